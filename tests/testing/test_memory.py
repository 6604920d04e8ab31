"""Workflows in memory: what a test of an application may rely on."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from pipeline import BadInput, submit
from pipeline.testing import MemoryRun, in_memory
from tests.testing import shop
from tests.testing.shop import gateway, orders, shipped


def test_a_job_goes_through_threads_loop_and_children_with_typed_values(run: MemoryRun, engine: Engine) -> None:
    """All in the thread of the test. Results arrive by name and type."""
    job = run.submit(orders, shop.Order(order=17))
    assert (job.status, job.attempts) == ("pending", [])
    run.drain()
    assert job.outcomes == [("charge", "succeeded"), ("pack", "succeeded"), ("ship", "succeeded")]
    assert job.result == {"shipped": Decimal("19.00")}
    assert job.results == {"charge": "receipt 1", "pack": "19.00", "ship": {"shipped": "19.00"}}
    assert shipped(engine) == 1


def test_backoff_is_waited_for_by_the_clock_of_the_test(run: MemoryRun) -> None:
    """The phase's own delays, without jitter."""
    gateway.down = 1
    job = run.submit(orders, {"order": 17})
    run.drain()
    assert (job.status, job.wait_reason) == ("retryable", "backoff")
    assert job.attempts[-1].error is not None and "the gateway is down (shop.py:" in job.attempts[-1].error
    run.advance(seconds=4)
    run.drain()
    assert job.status == "retryable"
    run.advance()
    run.drain()
    assert job.status == "succeeded"


def test_a_budget_that_is_used_up_fails_the_job_and_a_replay_starts_its_phase_again(run: MemoryRun) -> None:
    """With fresh budgets."""
    gateway.down = 3
    job = run.submit(orders, {"order": 17})
    for _ in range(3):
        run.drain()
        run.advance()
    assert [outcome for _, outcome in job.outcomes] == ["retried", "retried", "exhausted"]
    assert job.status == "failed" and "gateway" in str(job.error)
    assert job.replay() and not job.replay()
    run.drain()
    assert job.status == "succeeded" and job.attempts[3].number == 1


def test_an_attempt_that_is_killed_happened_outside_and_not_in_the_database(run: MemoryRun, engine: Engine) -> None:
    """G3, G4: the same key again; the row once."""
    job = run.submit(orders, {"order": 17})
    run.kill_at("charge")
    run.kill_at("kit-orders.ship")
    run.drain()
    assert job.outcomes == [
        ("charge", "crashed"),
        ("charge", "succeeded"),
        ("pack", "succeeded"),
        ("ship", "crashed"),
        ("ship", "succeeded"),
    ]
    assert gateway.charged == 2 * [f"{job.id}:charge"]
    assert shipped(engine) == 1


def test_three_kills_make_a_poison_pill(run: MemoryRun) -> None:
    """Crashes have a budget of their own."""
    job = run.submit(orders, {"order": 17})
    run.kill_at("charge", times=3)
    run.drain()
    assert [outcome for _, outcome in job.outcomes] == ["crashed", "crashed", "poisoned"]
    assert job.status == "failed" and "poison pill" in str(job.error)


def test_a_write_that_fails_leaves_nothing_and_the_phase_is_tried_again(run: MemoryRun, engine: Engine) -> None:
    """The write and the step of the job are one."""
    job = run.submit(orders, {"order": 17})
    with engine.begin() as db:
        db.exec_driver_sql("ALTER TABLE shipped RENAME TO away")
    run.drain()
    assert (job.status, job.phase) == ("retryable", "ship") and "no such table" in str(job.error)
    with engine.begin() as db:
        db.exec_driver_sql("ALTER TABLE away RENAME TO shipped")
    run.advance()
    run.drain()
    assert job.status == "succeeded" and shipped(engine) == 1


def test_writes_are_collected_without_a_database(engine: Engine) -> None:
    """To be looked at, or run."""
    with in_memory() as run:
        job = run.submit(orders, {"order": 17})
        run.drain()
        [write] = run.writes
        assert (write.job_id, write.phase, job.status) == (job.id, "ship", "succeeded")
        with engine.begin() as db:
            write.execute(db)
    assert shipped(engine) == 1


def test_what_code_under_test_submits_is_in_the_run_too(run: MemoryRun) -> None:
    """A batch with a callback: it counts the failed, and calls back once."""
    shop.order_parts([1, 2, 3])
    run.drain()
    assert [job.status for job in run.jobs("kit-parts")] == ["succeeded", "failed", "succeeded"]
    [report] = run.jobs(shop.reports)
    assert (report.result["total"], report.result["failed"]) == (3, 1)
    run.jobs("kit-parts")[1].replay()
    run.drain()
    assert len(run.jobs(shop.reports)) == 1


def test_a_job_exists_once_the_transaction_that_submitted_it_commits(run: MemoryRun, engine: Engine) -> None:
    """As in PostgreSQL: sessions and connections, rolled back, in savepoints, or committed."""
    with engine.connect() as db:
        submit(db, "kit-parts", {"n": 1})
        run.drain()
        assert not run.jobs()
        db.rollback()
        submit(db, "kit-parts", {"n": 3})
        db.commit()
    with Session(engine) as session, session.begin():
        shop.parts.submit({"n": 4}, session=session)
        with session.begin_nested() as savepoint:
            shop.parts.submit({"n": 5}, session=session)
            savepoint.rollback()
        assert len(run.jobs()) == 1
    assert [job.body["n"] for job in run.jobs()] == [3, 4]


def test_refusals_are_those_of_the_engine(run: MemoryRun) -> None:
    """With its words."""
    with pytest.raises(BadInput, match="unknown workflow 'nobody'"):
        submit(None, "nobody", {})
    with pytest.raises(BadInput, match="the body does not fit workflow kit-orders: order: "):
        run.submit(orders, {"order": "many"})
    with pytest.raises(BadInput, match="priority 10 is outside"):
        run.submit(orders, {"order": 1}, priority=10)
    with pytest.raises(TypeError, match="jobs belong to a transaction of PostgreSQL"):
        submit(object(), "kit-parts", {})  # type: ignore[call-overload]  # that is what is tested
    assert not run.jobs()


def test_the_same_key_is_the_same_job(run: MemoryRun) -> None:
    """Whatever signs it has."""
    keys = ['a"b', "c\\d", "NULL", " ", "é, {x}"]
    first = [run.submit("kit-parts", {"n": 1}, key=key).id for key in keys]
    again = shop.parts.submit_many([{"n": 1}] * 5, keys=keys)
    assert [job.id for job in again] == first and len(set(first)) == 5
