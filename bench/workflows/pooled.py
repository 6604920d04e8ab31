"""The same with a pool of ten processors a phase."""

from __future__ import annotations

from pipeline import Job, Workflow

pooled = Workflow("pooled")


@pooled.phase(pool=10)
def one(job: Job) -> None:
    return None


@pooled.phase(pool=10)
def two(job: Job) -> None:
    return None


@pooled.phase(pool=10)
def three(job: Job) -> None:
    return None
