"""pipeline.snooze: waiting at no cost, and release."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db
from tests.db.test_timeline import timeline


def test_a_snoozed_job_waits_and_pays_nothing(database: Db) -> None:
    """G6: no attempt, no crash; a new send number, a time, a reason."""
    hold = steps.held(database)
    assert steps.snooze(database, hold, delay=60) == "snoozed"
    row, waits = steps.job(database, hold.job), steps.waiting(database, hold.job)
    assert (row["status"], row["attempts"], row["crashes"], row["send"]) == ("pending", 0, 0, 2)
    assert (row["wait_reason"], row["error_message"]) == ("rate_limit", None)
    assert waits is not None
    assert (waits["due_at"], waits["reason"]) == (row["next_retry_at"], "rate_limit")
    assert steps.admit(database) == []


def test_a_job_released_at_shutdown_is_sent_again_at_once(database: Db) -> None:
    """A deploy costs no budget and no time."""
    hold = steps.held(database)
    assert steps.snooze(database, hold, outcome="released", reason="shutdown") == "released"
    assert [row["job_id"] for row in steps.admit(database)] == [hold.job]


@pytest.mark.parametrize("times", [20])
def test_any_number_of_waits_costs_nothing(database: Db, times: int) -> None:
    """Each is in the history under a fence of its own."""
    job_id = steps.submit(database)
    for _ in range(times):
        steps.snooze(database, steps.hold(database, job_id))
    row = steps.job(database, job_id)
    assert (row["status"], row["attempts"], row["crashes"], row["fence"]) == ("pending", 0, 0, times)
    assert steps.outcomes(database, job_id) == ["snoozed"] * times


def test_a_snooze_keeps_the_last_error(database: Db) -> None:
    """A wait after an error does not wipe what went wrong before."""
    hold = steps.held(database)
    steps.retry(database, hold, error="away")
    steps.snooze(database, steps.hold(database, hold.job))
    assert steps.job(database, hold.job)["error_message"] == "away"


# ---- what the other side asks for


def asked(db: Db, job: UUID, seconds: float = 1.0) -> tuple[str, float]:
    """The job runs and is asked to wait that long; the verdict, and how long it does."""
    hold = steps.hold(db, job)
    verdict = steps.snooze(db, hold, seconds, reason="retry_after", asked=True, error="429 of a stranger")
    waits = "SELECT coalesce(extract(epoch FROM next_retry_at - now()), 0)::float FROM pipeline.jobs WHERE id = %s"
    wait = float(steps.one(db, waits, job))
    clock.let_pass(db, wait + 1)
    return verdict, wait


def test_somebody_who_asks_for_a_wait_again_and_again_is_asked_ever_less_often(database: Db) -> None:
    """W3: 730 calls in 20 s. A quarter longer each time, up to a minute; never shorter than what was asked for."""
    job, calls, age = steps.submit(database), 0, 0.0
    while age < 60:
        verdict, wait = asked(database, job)
        assert verdict == "snoozed"
        calls, age = calls + 1, age + wait
    print(f"Retry-After: 0 for ever: {calls} calls in the first minute")
    assert calls <= 30
    assert asked(database, job, 300)[1] == pytest.approx(300, abs=1)
    for _ in range(10):
        _, wait = asked(database, job)
    assert wait == pytest.approx(60, abs=1)
    assert steps.job(database, job)["attempts"] == 0


def test_the_hundredth_such_wait_in_a_row_is_the_last_that_is_free(database: Db) -> None:
    """Then each is an error of the application, and the last of those ends the job and says why."""
    job = steps.submit(database)
    database.execute("UPDATE pipeline.jobs SET waits = 99 WHERE id = %s", (job,))
    assert [asked(database, job)[0] for _ in range(4)] == ["snoozed", "retried", "retried", "exhausted"]
    row = steps.job(database, job)
    assert (row["status"], row["attempts"], row["waits"]) == ("failed", 3, 103)
    assert "the other side asked to wait 103 times in a row" in row["error_message"]
    assert "429 of a stranger" in row["error_message"]
    assert steps.replay(database, job) and steps.job(database, job)["waits"] == 0


@pytest.mark.parametrize("how", ["a checkpoint", "progress"])
def test_progress_ends_a_row_of_waits(database: Db, how: str) -> None:
    """Page by page, with a rest at each: that may go on for as long as the work takes."""
    job = steps.submit(database)
    database.execute("UPDATE pipeline.jobs SET waits = 99 WHERE id = %s", (job,))
    hold = steps.hold(database, job)
    statement = "pipeline.hold(%s, %s)" if how == "a checkpoint" else "pipeline.progress(%s, %s, 1, 2)"
    assert steps.one(database, f"SELECT {statement}", hold.job, hold.fence) is True
    steps.snooze(database, hold, 1, reason="retry_after", asked=True)
    assert steps.job(database, job)["waits"] == 1


@pytest.mark.parametrize("reason", ["retry_after", "rate_limit", "breaker", "connection_lost", "polling"])
def test_other_waits_are_not_counted(database: Db, reason: str) -> None:
    """Our own limits and breakers, lost connections, and whatever a phase waits for of its own accord."""
    job = steps.submit(database)
    database.execute("UPDATE pipeline.jobs SET waits = 100 WHERE id = %s", (job,))
    for _ in range(3):
        assert steps.snooze(database, steps.hold(database, job), reason=reason) == "snoozed"
    row = steps.job(database, job)
    assert (row["waits"], row["attempts"]) == (100, 0)


# ---- a job that waits for ever


def test_a_job_that_waits_for_ever_has_a_bounded_history(database: Db) -> None:
    """F25: the last hundred attempts are kept, and those that were no waits. Its timeline has no gap."""
    job = steps.submit(database)
    for n in range(130):
        hold = steps.hold(database, job)
        if n == 3:
            steps.retry(database, hold, error="away")
        else:
            steps.snooze(database, hold, delay=2, reason="polling")
        clock.let_pass(database, 3)
    kept = [row["fence"] for row in steps.history(database, job)]
    assert kept == [4, *range(31, 131)]
    parts = timeline(database, job)
    # The test's own time comes on top of the time that it lets pass.
    gaps = [part for part in parts if part["seconds"] > 5]
    assert [part["part"] for part in gaps] == ["snoozed", "snoozed"]
    assert [part["seconds"] for part in gaps] == [pytest.approx(6, abs=3), pytest.approx(78, abs=20)]
    assert {part["part"] for part in parts} <= {"snoozed", "waiting", "queued", "running", "backing off"}


def test_a_row_that_another_transaction_holds_is_not_waited_for(database: Db, connect: Connect) -> None:
    """F3: 'locked' is neither won nor lost, and changes nothing."""
    hold, application = steps.held(database), connect()
    database.execute("SET lock_timeout = '100ms'")
    with application.transaction():
        application.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (hold.job,))
        with steps.nothing_changes(database):
            assert steps.snooze(database, hold) == steps.retry(database, hold) == "locked"
    assert steps.snooze(database, hold) == "snoozed"
