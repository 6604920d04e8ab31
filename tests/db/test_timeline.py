"""pipeline.timeline: where a job's time went."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from tests.db import clock, steps
from tests.db.steps import Db, Row

PARTS = {"waiting", "queued", "throttled", "snoozed", "backing off", "running", "failed"}


def timeline(db: Db, job_id: UUID) -> list[Row]:
    """The parts, checked: one follows the other from the job's first moment to its last (or to now)."""
    with db.transaction():
        parts = steps.rows(db, "SELECT * FROM pipeline.timeline(%s)", job_id)
        [life] = steps.rows(
            db, "SELECT created_at, coalesce(completed_at, now()) AS ended_at FROM pipeline.jobs WHERE id = %s", job_id
        )
    moments = [life["created_at"], *(moment for part in parts for moment in (part["started_at"], part["ended_at"]))]
    gaps = [
        (one, two) for one, two in zip(moments[0::2], [*moments[1::2], life["ended_at"]], strict=True) if one != two
    ]
    assert not gaps, f"the timeline has gaps or overlaps: {gaps}"
    assert {part["part"] for part in parts} <= PARTS
    assert sum(part["seconds"] for part in parts) == pytest.approx(
        (life["ended_at"] - life["created_at"]).total_seconds()
    )
    return parts


def lengths(parts: list[Row]) -> list[tuple[str, int]]:
    """(part, whole seconds), without what took no time."""
    return [(part["part"], round(part["seconds"])) for part in parts if part["seconds"] >= 0.5]


def run_for(db: Db, job_id: UUID, wait: float = 2, queue: float = 3, work: float = 5) -> steps.Hold:
    clock.let_pass(db, wait)
    steps.admit(db)
    clock.let_pass(db, queue)
    sent = steps.one(db, "SELECT sent_at FROM pipeline.outbox WHERE job_id = %s", job_id)
    answer = steps.claim(db, job_id)
    db.execute("UPDATE pipeline.jobs SET sent_at = %s WHERE id = %s", (sent, job_id))
    clock.let_pass(db, work)
    return steps.Hold(job_id, answer["fence"])


def test_a_job_that_succeeds_waited_queued_and_ran(database: Db) -> None:
    """And the sum is its age."""
    job_id = steps.submit(database)
    steps.complete(database, run_for(database, job_id))
    clock.let_pass(database, 100)
    assert lengths(timeline(database, job_id)) == [("waiting", 2), ("queued", 3), ("running", 5)]


def test_a_job_on_its_way_is_counted_until_now(database: Db) -> None:
    """While it waits, is queued, and runs."""
    job_id = steps.submit(database)
    clock.let_pass(database, 2)
    assert lengths(timeline(database, job_id)) == [("waiting", 2)]
    steps.admit(database)
    clock.let_pass(database, 3)
    assert lengths(timeline(database, job_id)) == [("waiting", 2), ("queued", 3)]


def test_a_scheduled_job_waits_until_its_time(database: Db) -> None:
    """Then it waits at the gate like any other."""
    job_id = steps.submit(database, due=10)
    clock.let_pass(database, 4)
    assert lengths(timeline(database, job_id)) == [("snoozed", 4)]
    clock.let_pass(database, 8)
    assert lengths(timeline(database, job_id)) == [("snoozed", 10), ("waiting", 2)]


def test_a_retried_job_backed_off(database: Db) -> None:
    """Each attempt has its parts, its outcome and its error."""
    job_id = steps.submit(database)
    steps.retry(database, run_for(database, job_id), delay=20)
    clock.let_pass(database, 20)
    steps.complete(database, run_for(database, job_id))
    parts = timeline(database, job_id)
    once = [("waiting", 2), ("queued", 3), ("running", 5)]
    assert lengths(parts) == [*once, ("backing off", 20), *once]
    runs = [(part["attempt"], part["outcome"], part["error"]) for part in parts if part["part"] == "running"]
    assert runs == [(1, "retried", "away"), (2, "succeeded", None)]


def test_a_snoozed_job_was_snoozed(database: Db) -> None:
    """Seen while it waits, too."""
    job_id = steps.submit(database)
    steps.snooze(database, run_for(database, job_id), delay=20)
    clock.let_pass(database, 7)
    assert lengths(timeline(database, job_id))[-1] == ("snoozed", 7)


def test_a_crashed_and_a_taken_over_job_have_no_gap(database: Db) -> None:
    """The next attempt begins where the dead one ended."""
    job_id = steps.submit(database)
    hold = run_for(database, job_id)
    steps.take_over(database, hold)
    clock.let_pass(database, 4)
    steps.crash(database, steps.Hold(job_id, hold.fence + 1, "w2"))
    clock.let_pass(database, 1)
    parts = lengths(timeline(database, job_id))
    assert parts == [("waiting", 2), ("queued", 3), ("running", 5), ("running", 4), ("waiting", 1)]


@pytest.mark.parametrize("moment", ["waiting", "running", "backing off"])
def test_a_cancelled_jobs_timeline_ends_with_the_cancel(database: Db, moment: str) -> None:
    """Wherever it was."""
    job_id = steps.submit(database)
    if moment == "waiting":
        clock.let_pass(database, 2)
    else:
        hold = run_for(database, job_id)
        if moment == "backing off":
            steps.retry(database, hold, delay=60)
            clock.let_pass(database, 9)
    steps.cancel(database, job_id)
    clock.let_pass(database, 50)
    last = lengths(timeline(database, job_id))[-1]
    assert last == {"waiting": ("waiting", 2), "running": ("running", 5), "backing off": ("backing off", 9)}[moment]


@pytest.mark.parametrize("end", ["cancelled", "undeliverable", "expired"])
def test_a_job_that_ended_in_the_queue_was_queued(database: Db, end: str) -> None:
    """Its message was in the broker: that is not the gate's doing."""
    job_id = steps.submit(database, expires=5)
    clock.let_pass(database, 2)
    steps.admit(database)
    clock.let_pass(database, 3)
    ends: dict[str, Callable[[], object]] = {
        "cancelled": lambda: steps.cancel(database, job_id),
        "undeliverable": lambda: steps.undeliverable(database, job_id, 1),
        "expired": lambda: steps.expire(database, job_id),
    }
    assert ends[end]()
    assert lengths(timeline(database, job_id)) == [("waiting", 2), ("queued", 3)]


def test_a_replayed_job_has_no_gap(database: Db) -> None:
    """The time between its failure and its replay is part of its age."""
    job_id = steps.submit(database)
    steps.fail(database, run_for(database, job_id))
    clock.let_pass(database, 30)
    steps.replay(database, job_id)
    steps.complete(database, run_for(database, job_id))
    timeline(database, job_id)


def test_a_job_of_three_phases_has_no_gap(database: Db) -> None:
    """A hand-over is a moment, not a time."""
    job_id = steps.submit(database, "triple")
    for _ in range(3):
        steps.complete(database, run_for(database, job_id))
    assert [part["phase"] for part in timeline(database, job_id) if part["part"] == "running"] == [
        "first",
        "second",
        "third",
    ]
