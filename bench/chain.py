"""This project's side of the benchmark: three empty phases."""

from __future__ import annotations

from pipeline import Job, Workflow

chain = Workflow("chain")


@chain.phase("one", pool=None)
def one(job: Job) -> None:
    return None


@chain.phase("two", pool=None)
def two(job: Job) -> None:
    return None


@chain.phase("three", pool=None)
def three(job: Job) -> None:
    return None
