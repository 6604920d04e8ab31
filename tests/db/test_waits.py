"""What comes after a phase beside the next one: branches, times, events and children (pipeline.complete, p_next)."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold, Row


def signal(db: Db, job: UUID, event: str = "approved", body: Any = None) -> str:
    return str(steps.one(db, "SELECT pipeline.signal(%s, %s, %s)", job, event, Jsonb(body)))


def wait(db: Db, workflow: str = "triple", **following: Any) -> UUID:
    """A job whose first phase ended with this."""
    hold = steps.held(db, workflow)
    assert steps.complete(db, hold, {"default": 1}, following=following)["verdict"] == "handed_over"
    return hold.job


def phases(db: Db) -> list[str]:
    return [
        row["phase"]
        for row in steps.rows(db, "SELECT phase FROM pipeline.phases WHERE workflow = 'triple' ORDER BY position")
    ]


def results(db: Db, job: UUID) -> Any:
    return steps.job(db, job)["result"]


def waits(db: Db, job: UUID) -> str | None:
    row = steps.waiting(db, job)
    return row["waits_for"] if row else None


# ---- branches


def test_a_job_goes_to_another_phase_and_its_steps_run_anew(database: Db) -> None:
    first, second, third = phases(database)
    hold = steps.held(database, "triple")
    keep = "SELECT verdict FROM pipeline.keep_steps(ARRAY[%s], ARRAY[%s]::bigint[], ARRAY['once'], ARRAY['1'])"
    assert steps.one(database, keep, hold.job, hold.fence) == "won"
    steps.complete(database, hold, {"n": 1}, following={"phase": third})
    assert (steps.job(database, hold.job)["phase"], results(database, hold.job)) == (third, {first: {"n": 1}})
    hold = steps.hold(database, hold.job)
    steps.complete(database, hold, following={"phase": first})
    assert steps.job(database, hold.job)["phase"] == first
    assert steps.one(database, "SELECT count(*) FROM pipeline.steps") == 0
    assert second not in (row["phase"] for row in steps.history(database, hold.job))


def test_a_job_ends_early_with_its_result(database: Db) -> None:
    hold = steps.held(database, "triple")
    assert steps.complete(database, hold, {"n": 1}, following={"finish": True})["verdict"] == "done"
    status = steps.rows(database, "SELECT state, result FROM pipeline.job_status(%s)", [hold.job])
    assert status == [{"state": "succeeded", "result": {"n": 1}}]
    assert steps.waiting(database, hold.job) is None


@pytest.mark.parametrize(
    ("workflow", "following", "says"),
    [
        ("triple", {"phase": "nowhere"}, "has no phase 'nowhere'"),
        ("single", {"after": 1}, "is the last of its workflow"),
        ("single", {"event": "approved"}, "is the last of its workflow"),
    ],
)
def test_what_cannot_come_next_changes_nothing(database: Db, workflow: str, following: Row, says: str) -> None:
    hold = steps.held(database, workflow)
    with steps.nothing_changes(database), pytest.raises(psycopg.Error, match=says):
        steps.complete(database, hold, following=following)


def test_a_job_does_not_go_round_in_circles_for_ever(database: Db) -> None:
    hold = steps.held(database, "triple")
    database.execute("UPDATE pipeline.jobs SET fence = 10000 WHERE id = %s", (hold.job,))
    with pytest.raises(psycopg.Error, match="has had 10000 attempts"):
        steps.complete(database, Hold(hold.job, 10000), following={"phase": phases(database)[0]})


# ---- time


def test_the_next_phase_begins_when_its_time_has_come(database: Db) -> None:
    job = wait(database, after=3600)
    assert steps.admit(database) == []
    assert steps.job(database, job)["wait_reason"] == "after"
    database.execute("UPDATE pipeline.outbox SET due_at = now() WHERE job_id = %s", (job,))
    assert [row["job_id"] for row in steps.admit(database)] == [job]


def test_a_sleep_is_kept_with_its_wait(database: Db) -> None:
    """So that the next attempt does not sleep again."""
    hold = steps.held(database)
    snoozed = steps.one(
        database, "SELECT pipeline.snooze(%s, %s, 'snoozed', 'sleep', 60, NULL, false, 'night')", hold.job, hold.fence
    )
    assert snoozed == "snoozed"
    assert steps.rows(database, "SELECT phase, name, value FROM pipeline.steps") == [
        {"phase": "act", "name": "night", "value": "null"}
    ]


# ---- events


def test_a_signal_ends_the_wait_with_its_body(database: Db) -> None:
    job = wait(database, event="approved")
    assert (steps.admit(database), waits(database, job)) == ([], "event:approved")
    assert signal(database, job, "refused", 1) == "kept"
    assert signal(database, job, "approved", {"by": "Ada"}) == "delivered"
    assert results(database, job) == {phases(database)[0]: {"by": "Ada"}}
    assert [row["job_id"] for row in steps.admit(database)] == [job]
    assert steps.job(database, job)["wait_reason"] == "signalled"


def test_a_signal_before_the_wait_is_kept_and_each_ends_one_wait(database: Db) -> None:
    hold = steps.held(database, "triple")
    assert [signal(database, hold.job, body=n) for n in (1, 2)] == ["kept", "kept"]
    steps.complete(database, hold, following={"event": "approved"})
    assert results(database, hold.job) == {phases(database)[0]: 1}
    hold = steps.hold(database, hold.job)
    steps.complete(database, hold, following={"event": "approved"})
    assert results(database, hold.job) == dict(zip(phases(database), (1, 2), strict=False))
    assert waits(database, hold.job) is None


def test_a_wait_that_times_out_keeps_its_default(database: Db) -> None:
    job = wait(database, event="approved", after=3600)
    database.execute("UPDATE pipeline.outbox SET due_at = now() WHERE job_id = %s", (job,))
    # Its time is over, whoever comes first to the gate.
    assert signal(database, job) == "kept"
    assert [row["job_id"] for row in steps.admit(database)] == [job]
    assert results(database, job) == {phases(database)[0]: {"default": 1}}
    assert steps.job(database, job)["wait_reason"] == "event"
    assert waits(database, job) is None


def test_signals_and_timeouts_race_and_one_wins(database: Db, connect: Connect) -> None:
    """The row, the history and the result say the same."""
    other = connect()
    jobs = [wait(database, event="approved", after=3600) for _ in range(150)]
    answers: dict[UUID, str] = {}

    def signal_all() -> None:
        for job in jobs:
            answers[job] = signal(other, job, body="signal")

    thread = threading.Thread(target=signal_all)
    thread.start()
    for job in reversed(jobs):
        database.execute(
            "UPDATE pipeline.outbox SET due_at = now() WHERE job_id = %s AND waits_for IS NOT NULL AND due_at > now()",
            (job,),
        )
        steps.admit(database)
    thread.join()
    steps.admit(database)
    for job in jobs:
        won = answers[job] == "delivered"
        assert results(database, job)[phases(database)[0]] == ("signal" if won else {"default": 1})
        assert steps.job(database, job)["wait_reason"] == ("signalled" if won else "event")
        taken = "SELECT taken_at IS NOT NULL FROM pipeline.signals WHERE job_id = %s"
        assert steps.one(database, taken, job) == won
        hold = steps.Hold(job, steps.claim(database, job)["fence"])
        steps.retry(database, hold)
        assert steps.history(database, job)[-1]["wait_reason"] == ("signalled" if won else "event")
    assert {"delivered", "kept"} == set(answers.values())


def test_a_signal_that_commits_while_the_wait_begins_is_found(database: Db, connect: Connect) -> None:
    """The completion finds the row locked and asks again; then the signal is there."""
    hold, app = steps.held(database, "triple"), connect()
    with app.transaction():
        assert signal(app, hold.job, body=7) == "kept"
        assert steps.complete(database, hold, following={"event": "approved"})["verdict"] == "locked"
    steps.complete(database, hold, following={"event": "approved"})
    assert (results(database, hold.job), waits(database, hold.job)) == ({phases(database)[0]: 7}, None)


@pytest.mark.parametrize("after", [{}, {"after": 3600}])
def test_a_job_that_was_cancelled_while_it_waited_waits_again_when_it_is_replayed(
    database: Db, after: dict[str, Any]
) -> None:
    """Nobody has answered: what is told then ends the wait, and nothing else."""
    job = wait(database, event="approved", **after)
    until = (steps.waiting(database, job) or {})["due_at"]
    assert steps.cancel(database, job) and signal(database, job) == "final"
    for _ in range(2):
        assert steps.replay(database, job)
        assert (steps.admit(database), waits(database, job)) == ([], "event:approved")
        assert (steps.waiting(database, job) or {})["due_at"] == until
        assert steps.job(database, job)["wait_reason"] == "event"
        assert steps.cancel(database, job)
    assert steps.replay(database, job)
    assert signal(database, job, body={"by": "Ada"}) == "delivered"
    assert results(database, job) == {phases(database)[0]: {"by": "Ada"}}
    hold = steps.hold(database, job)
    steps.fail(database, hold)
    assert steps.replay(database, job) and waits(database, job) is None


def test_a_wait_whose_time_passed_while_its_job_was_cancelled_is_over(database: Db) -> None:
    job = wait(database, event="approved", after=3600)
    steps.cancel(database, job)
    database.execute("UPDATE pipeline.attempts SET due_at = now() WHERE outcome = 'cancelled'")
    assert steps.replay(database, job)
    assert [row["job_id"] for row in steps.admit(database)] == [job]
    assert results(database, job) == {phases(database)[0]: {"default": 1}}


def test_signals_to_what_has_ended_or_does_not_exist_are_answered(database: Db) -> None:
    hold = steps.held(database)
    steps.complete(database, hold)
    with steps.nothing_changes(database):
        assert (signal(database, hold.job), signal(database, uuid4())) == ("final", "unknown_job")


@pytest.mark.parametrize(("event", "body"), [("", 1), ("e" * 201, 1), ("e", "x" * 70_000)])
def test_events_are_bounded(database: Db, event: str, body: object) -> None:
    hold = steps.held(database)
    with pytest.raises(psycopg.Error, match="event"):
        signal(database, hold.job, event, body)


def test_a_job_is_not_told_of_more_than_a_thousand_events(database: Db) -> None:
    hold = steps.held(database)
    database.execute(
        "INSERT INTO pipeline.signals (job_id, name, body) SELECT %s, 'n', '1' FROM generate_series(1, 1000)",
        (hold.job,),
    )
    with pytest.raises(psycopg.Error, match="which is the limit"):
        signal(database, hold.job)


def test_a_job_with_ten_thousand_waiting_siblings_costs_the_gate_nothing(database: Db) -> None:
    """What waits for somebody is in none of the indexes that the gate reads."""
    jobs = [wait(database, event="approved") for _ in range(3)]
    columns = "phase_id, priority, due_at, waits_for"
    database.execute(
        f"INSERT INTO pipeline.outbox (job_id, {columns}) "
        f"SELECT gen_random_uuid(), {columns} FROM pipeline.outbox, generate_series(1, 3334) WHERE job_id = ANY (%s)",
        (jobs,),
    )
    database.execute("ANALYZE pipeline.outbox")
    plan = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM pipeline.admit(1, 100)"
    [told] = steps.rows(database, plan)[0]["QUERY PLAN"]
    steps.admit(database)
    [told] = steps.rows(database, plan)[0]["QUERY PLAN"]
    blocks = told["Plan"]["Shared Hit Blocks"] + told["Plan"]["Shared Read Blocks"]
    looks = [line for one in plans_of(database, "SELECT * FROM pipeline.admit(1, 100)") for line in one.splitlines()]
    scans = [line.strip() for line in looks if "outbox" in line and ("Scan" in line or "Update" in line)]
    print("\n" + "\n".join([*scans, f"{blocks} blocks in all"]))
    assert blocks < 200
    assert scans and not [line for line in scans if "Seq Scan" in line]


def plans_of(db: Db, statement: str) -> list[str]:
    """What PostgreSQL did for each statement of the functions that this one calls."""
    said: list[str] = []
    db.execute("LOAD 'auto_explain'")
    db.execute("SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = on")
    db.execute("SET auto_explain.log_min_duration = 0; SET client_min_messages = log")

    def note(notice: psycopg.errors.Diagnostic) -> None:
        said.append(notice.message_primary or "")

    db.add_notice_handler(note)
    try:
        db.execute(statement)
    finally:
        db.remove_notice_handler(note)
        db.execute("SET auto_explain.log_min_duration = -1; RESET client_min_messages")
    return said
