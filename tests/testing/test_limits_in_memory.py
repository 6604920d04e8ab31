"""Limits and breakers in memory: accepted, and they hold nobody up; a body that does not fill a name is refused as ever."""

from __future__ import annotations

import pytest

from pipeline import BadInput, Breaker, Job, Limit, Transient, Workflow
from pipeline.testing.memory.run import in_memory

visits = Workflow("memory-visits")


@visits.phase
def begin(job: Job) -> None:
    return None


@visits.phase(limit=Limit("visits:{shop}", rate="1/h"), breaker=Breaker("visits:{shop}", failures=1))
def visit(job: Job) -> str:
    if job.body.get("ill"):
        raise Transient("it is ill")
    return "seen"


@visits.phase(limit="other")
async def look(job: Job) -> str:
    async with Breaker("inner").calling(job):
        return "looked"


def test_they_hold_nobody_up() -> None:
    with in_memory() as run:
        jobs = [run.submit(visits, {"shop": "north"}) for _ in range(5)]
        run.drain()
        assert {job.status for job in jobs} == {"succeeded"}


def test_an_error_is_retried_and_opens_nothing() -> None:
    with in_memory() as run:
        ill, well = run.submit(visits, {"shop": "north", "ill": True}), run.submit(visits, {"shop": "north"})
        run.drain()
        assert (ill.status, well.status) == ("retryable", "succeeded")


def test_a_body_that_does_not_fill_the_name_is_refused() -> None:
    with in_memory() as run, pytest.raises(BadInput, match="does not fill the limit"):
        run.submit(visits, {})
