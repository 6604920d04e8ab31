"""Runs in memory: order, time, limits, cancelling, and what a run refuses."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import create_engine

from pipeline import Job, Workflow, cancel, submit
from pipeline.store.gateway import callers
from pipeline.testing import MemoryRun, in_memory
from pipeline.testing.memory.ends import WouldWait
from pipeline.testing.memory.rows import Refused
from tests.testing import shop
from tests.testing.shop import gateway, orders, shipped


def test_priority_goes_first_then_a_job_that_began_then_the_oldest(
    run: MemoryRun, workflow: Workflow[dict[str, Any], Any]
) -> None:
    """Finish-first, as declared."""
    ran: list[str] = []

    @workflow.phase
    def first(job: Job) -> None:
        ran.append(f"{job.body['name']} first")

    @workflow.phase
    def second(job: Job) -> None:
        ran.append(f"{job.body['name']} second")

    for name, priority in (("old", 0), ("new", 0), ("urgent", 5)):
        run.submit(workflow, {"name": name}, priority=priority)
    run.drain()
    assert ran == [f"{name} {phase}" for name in ("urgent", "old", "new") for phase in ("first", "second")]


def test_what_is_due_later_waits_for_its_time(run: MemoryRun) -> None:
    """By the clock that code under test reads, too."""
    job = run.submit("kit-parts", {"n": 1}, due=datetime.now(UTC) + timedelta(hours=1))
    run.drain()
    assert (job.status, job.wait_reason) == ("pending", "scheduled")
    run.advance(hours=1)
    run.drain()
    assert job.status == "succeeded"


def test_a_retry_after_of_a_shared_limit_holds_all_jobs_of_the_phase(run: MemoryRun) -> None:
    """At no cost."""
    refused = run.submit("kit-limited", {"refused": True})
    other = run.submit("kit-limited", {"name": "other"})
    run.drain()
    assert (refused.status, other.status, refused.outcomes) == ("pending", "pending", [("call", "snoozed")])
    run.advance(minutes=2)
    run.drain()
    assert (refused.status, other.status) == ("succeeded", "succeeded")


def test_a_phase_that_takes_longer_than_its_limit_fails(
    run: MemoryRun, workflow: Workflow[dict[str, Any], Any]
) -> None:
    """By the run's clock: the test says how long it took."""

    @workflow.phase(time_limit=30)
    def slow(job: Job) -> str:
        run.advance(seconds=31 if job.attempt == 1 else 29)
        return "done"

    job = run.submit(workflow)
    run.drain()
    assert job.status == "retryable" and "the time limit of 30 s was exceeded" in str(job.error)
    run.advance()
    run.drain()
    assert job.result == "done"


def test_a_job_that_is_cancelled_while_it_runs_keeps_nothing(
    run: MemoryRun, workflow: Workflow[dict[str, Any], Any]
) -> None:
    """G5: neither its result nor a checkpoint."""

    @workflow.phase
    def cancelled(job: Job) -> str:
        cancel(None, job.id, "enough")
        job.keep("INSERT INTO shipped (job) VALUES (:job)", job=str(job.id))
        return "too late"

    job = run.submit(workflow)
    run.drain()
    assert (job.status, job.results, job.error) == ("cancelled", {}, "enough")
    assert run.engine is not None and shipped(run.engine) == 0


def test_rows_are_read_and_checkpoints_kept_in_the_applications_database(
    run: MemoryRun, workflow: Workflow[dict[str, Any], Any]
) -> None:
    """Those of an attempt that was killed, too."""

    @workflow.phase
    async def reads(job: Job) -> int:
        await job.keep("INSERT INTO shipped (job) VALUES (:job)", job=f"{job.id} {job.fence}")
        rows = await job.read("SELECT count(*) AS n FROM shipped")
        return int(rows[0]["n"])

    run.kill_at("reads")
    job = run.submit(workflow)
    run.drain()
    assert job.result == 2


def test_a_call_that_is_not_awaited_is_the_error_that_it_is_in_a_worker(
    run: MemoryRun, workflow: Workflow[dict[str, Any], Any]
) -> None:
    """The phase would do nothing there."""

    @workflow.phase
    async def forgets(job: Job) -> None:
        job.progress(1, 2)

    job = run.submit(workflow)
    run.drain()
    assert job.status == "failed" and "was called and not awaited" in str(job.error)


def test_a_handle_waits_by_running_what_is_due(run: MemoryRun) -> None:
    """What waits for a time would be waited for in vain, and says so."""
    gateway.down = 1
    handle = orders.submit(shop.Order(order=17))
    with pytest.raises(WouldWait, match=r"backoff.*run\.advance"):
        handle.result(timeout=1)
    assert handle.status().state == "retryable"
    run.advance()
    assert handle.result() == {"shipped": Decimal("19.00")}
    assert [status.state for status in handle.watch()] == ["succeeded"]
    assert run.job(handle).status == "succeeded" and not handle.cancel()


def test_an_async_test_drains_as_well(run: MemoryRun) -> None:
    """The phases have a loop of their own."""

    async def test() -> str:
        job = run.submit(orders, {"order": 1})
        run.drain()
        return job.status

    assert asyncio.run(test()) == "succeeded"


def test_a_run_ends_with_its_block_and_is_not_nested(run: MemoryRun) -> None:
    """After it, submit means PostgreSQL again."""
    with pytest.raises(RuntimeError, match="open already"), in_memory():
        pass
    with pytest.raises(LookupError, match="no one phase is meant by 'nothing'"):
        run.kill_at("nothing")
    with pytest.raises(ValueError, match="time moves on only"):
        run.advance(seconds=-1)
    assert callers.stand_in is not None


def test_a_job_without_an_end_ends_the_drain(run: MemoryRun, workflow: Workflow[dict[str, Any], Any]) -> None:
    """With the job's name."""

    @workflow.phase
    def again(job: Job) -> None:
        submit(None, "kit-own", {})

    run.submit(workflow)
    with pytest.raises(AssertionError, match=r"attempts and no end: .*kit-own\.again"):
        run.drain()


def test_a_step_that_the_state_machine_does_not_have_is_refused(run: MemoryRun) -> None:
    """The run cannot do what PostgreSQL would not let it."""
    job = run.submit("kit-parts", {"n": 1})
    run.drain()
    row = run._table.rows[job.id]
    ends = lambda: row.complete(None, None, run.clock.now(), 1)  # noqa: E731  one of the steps
    for step in (row.claim, lambda: row.cancel("why"), lambda: row.replay(1), ends):
        with pytest.raises(Refused, match="is no step from there"):
            step()


def test_another_database_than_sqlite_of_the_kit_will_do() -> None:
    """Any engine of SQLAlchemy."""
    with in_memory(create_engine("sqlite://")) as run:
        assert run.submit("kit-parts", {"n": 1}).status == "pending"
