"""Limits and breakers in memory: accepted, and they hold nobody up; a body that does not fill a name is refused as ever."""

from __future__ import annotations

import pytest

from pipeline import BadInput, Breaker, Job, Limit, Transient, Workflow
from pipeline.declare import registry
from pipeline.testing.memory.run import in_memory


def begin(job: Job) -> None:
    return None


def visit(job: Job) -> str:
    if job.body.get("ill"):
        raise Transient("it is ill")
    return "seen"


async def look(job: Job) -> str:
    async with Breaker("inner").calling(job):
        return "looked"


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Workflow:
    """Known to these tests alone: its limits would be in everybody's database."""
    monkeypatch.setattr(registry, "_workflows", dict(registry.workflows()))
    workflow = Workflow("memory-visits")
    workflow.phase(begin)
    workflow.phase(limit=Limit("visits:{shop}", rate="1/h"), breaker=Breaker("visits:{shop}", failures=1))(visit)
    workflow.phase(limit="other")(look)
    return workflow


def test_they_hold_nobody_up(visits: Workflow) -> None:
    with in_memory() as run:
        jobs = [run.submit(visits, {"shop": "north"}) for _ in range(5)]
        run.drain()
        assert {job.status for job in jobs} == {"succeeded"}


def test_an_error_is_retried_and_opens_nothing(visits: Workflow) -> None:
    with in_memory() as run:
        ill, well = run.submit(visits, {"shop": "north", "ill": True}), run.submit(visits, {"shop": "north"})
        run.drain()
        assert (ill.status, well.status) == ("retryable", "succeeded")


def test_a_body_that_does_not_fill_the_name_is_refused(visits: Workflow) -> None:
    with in_memory() as run, pytest.raises(BadInput, match="does not fill the limit"):
        run.submit(visits, {})
