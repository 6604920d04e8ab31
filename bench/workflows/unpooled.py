"""The same without a pool, whatever the default is."""

from __future__ import annotations

from pipeline import Job, Workflow

unpooled = Workflow("unpooled")


@unpooled.phase(pool=None)
def one(job: Job) -> None:
    return None


@unpooled.phase(pool=None)
def two(job: Job) -> None:
    return None


@unpooled.phase(pool=None)
def three(job: Job) -> None:
    return None
