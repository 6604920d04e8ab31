"""Three empty phases with default options."""

from __future__ import annotations

from pipeline import Job, Workflow

chain = Workflow("chain")


@chain.phase
def one(job: Job) -> None:
    return None


@chain.phase
def two(job: Job) -> None:
    return None


@chain.phase
def three(job: Job) -> None:
    return None
