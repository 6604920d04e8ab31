"""This project's side of the benchmark: three empty phases. No limit that a round could reach: the peers have none."""

from __future__ import annotations

from pipeline import Job, Workflow

LIMIT = 5000
chain = Workflow("chain")


@chain.phase("one", pool=None, queue_limit=LIMIT)
def one(job: Job) -> None:
    return None


@chain.phase("two", pool=None, queue_limit=LIMIT)
def two(job: Job) -> None:
    return None


@chain.phase("three", pool=None, queue_limit=LIMIT)
def three(job: Job) -> None:
    return None
