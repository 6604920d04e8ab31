"""pipeline.replay: a failed job starts its phase again."""

from __future__ import annotations

from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.db import steps
from tests.db.steps import Db, Hold


def failed(db: Db, workflow: str = "single") -> Hold:
    hold = steps.held(db, workflow)
    steps.fail(db, hold)
    return hold


def test_a_failed_job_starts_again_with_fresh_budgets(database: Db) -> None:
    """A new send number voids the dead letter; the fence only grows; the history stays."""
    hold = failed(database)
    assert steps.replay(database, hold.job) is True
    row = steps.job(database, hold.job)
    assert (row["status"], row["attempts"], row["crashes"], row["send"]) == ("pending", 0, 0, 2)
    assert (row["completed_at"], row["error_message"]) == (None, None)
    assert steps.hold(database, hold.job).fence == hold.fence + 1
    assert steps.outcomes(database, hold.job) == ["failed"]


def test_it_starts_again_in_the_phase_where_it_failed(database: Db) -> None:
    """With the results of the earlier ones."""
    hold = steps.held(database, "triple")
    steps.complete(database, hold, {"n": 1})
    second = Hold(hold.job, steps.claim(database, hold.job)["fence"])
    steps.fail(database, second)
    steps.replay(database, hold.job)
    row = steps.job(database, hold.job)
    assert (row["phase"], row["result"]) == ("second", {"first": {"n": 1}})


def test_a_dead_letter_revives_only_the_send_it_failed_with(database: Db) -> None:
    """Rule 13: an older dead letter is harmless, and so is the same one moved twice."""
    hold = failed(database)
    send = steps.job(database, hold.job)["send"]
    with steps.nothing_changes(database):
        assert steps.replay(database, hold.job, send - 1) is False
        assert steps.replay(database, hold.job, send + 1) is False
    assert steps.replay(database, hold.job, send) is True
    with steps.nothing_changes(database):
        assert steps.replay(database, hold.job, send) is False


def test_only_a_failed_or_cancelled_job_can_be_replayed(database: Db) -> None:
    """Not a waiting, running, succeeded or unknown one; a cancelled one not by its message."""
    done, runs, gone, waits = steps.held(database), steps.held(database), steps.submit(database), steps.submit(database)
    steps.complete(database, done)
    steps.cancel(database, gone)
    with steps.nothing_changes(database):
        assert not any(steps.replay(database, job_id) for job_id in (done.job, runs.job, waits, uuid4()))
        assert not steps.replay(database, gone, steps.job(database, gone)["send"])
    assert steps.replay(database, gone)
    assert steps.job(database, gone)["status"] == "pending" and steps.waiting(database, gone) is not None


def test_a_job_can_be_replayed_with_another_body(database: Db) -> None:
    """One that is too long is refused, and nothing changes."""
    hold = failed(database)
    with steps.nothing_changes(database), pytest.raises(psycopg.Error, match="the limit is 65536"):
        database.execute("SELECT pipeline.replay(%s, p_body => %s)", (hold.job, Jsonb({"x": "y" * 70_000})))
    database.execute("SELECT pipeline.replay(%s, p_body => %s)", (hold.job, Jsonb({"n": 2})))
    assert steps.job(database, hold.job)["body"] == {"n": 2}


def test_the_old_attempt_stays_dead(database: Db) -> None:
    """Its fence is not the new attempt's."""
    hold = failed(database)
    steps.replay(database, hold.job)
    steps.hold(database, hold.job, "w2")
    with steps.nothing_changes(database):
        assert steps.complete(database, hold)["verdict"] == "lost"
        assert steps.fail(database, hold) == "failed"


def reason(database: Db, job_id: UUID) -> str | None:
    waiting = steps.waiting(database, job_id)
    assert waiting is not None
    said: str | None = waiting["reason"]
    return said


def test_many_start_again_in_their_order_and_at_the_rate_asked_for(database: Db) -> None:
    """The first at once, the others when their time has come; what is not failed takes no place."""
    one, two, three = (failed(database).job for _ in range(3))
    runs = steps.held(database).job
    started = steps.rows(database, "SELECT pipeline.replay_many(%s::uuid[], 4) AS id", [three, runs, one, two, uuid4()])
    assert [row["id"] for row in started] == [three, one, two]
    due = [steps.job(database, job_id)["next_retry_at"] for job_id in (three, one, two)]
    assert [(moment - due[0]).total_seconds() for moment in due] == [0, 0.25, 0.5]
    assert [reason(database, job_id) for job_id in (three, one, two)] == [None, "replay", "replay"]
    assert {row["job_id"] for row in steps.admit(database)} == {three}


def test_many_without_a_rate_start_at_once(database: Db) -> None:
    """None of them has a due time."""
    jobs = [failed(database).job for _ in range(3)]
    assert len(steps.rows(database, "SELECT pipeline.replay_many(%s::uuid[])", jobs)) == 3
    assert {row["job_id"] for row in steps.admit(database)} == set(jobs)
