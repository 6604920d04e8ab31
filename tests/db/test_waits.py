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


def spawn(db: Db, hold: Hold, children: int, policy: str = "best_effort", workflow: str = "single") -> UUID:
    """Children of the attempt, as its completion submits them."""
    batch = uuid4()
    bodies = [Jsonb({"n": n}) for n in range(children)]
    with db.transaction():
        db.execute(
            "SELECT pipeline.spawn(%s, %s, %s, %s, %s::jsonb[], 0, NULL)", (hold.job, batch, policy, workflow, bodies)
        )
        assert steps.complete(db, hold, following={"batch": str(batch)})["verdict"] == "handed_over"
    return batch


def children(db: Db, batch: UUID) -> list[UUID]:
    return [row["id"] for row in steps.rows(db, "SELECT id FROM pipeline.ends(%s, NULL, 0, 1000000)", batch)]


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


# ---- children


def end(db: Db, job: UUID, how: str = "complete") -> None:
    if how == "cancel":
        assert steps.cancel(db, job)
        return
    hold = steps.hold(db, job)
    if how == "fail":
        assert steps.fail(db, hold) == "failed"
    else:
        steps.complete(db, hold, {"of": str(job)})


def test_a_job_waits_for_all_its_children_and_gets_their_ends_in_order(database: Db) -> None:
    hold = steps.held(database, "triple")
    batch = spawn(database, hold, 20)
    found = children(database, batch)
    assert [steps.job(database, one)["body"]["n"] for one in found] == list(range(20))
    for place, one in enumerate(reversed(found)):
        assert waits(database, hold.job) == f"children:{batch}"
        end(database, one, ("complete", "fail", "cancel")[place % 3])
    assert waits(database, hold.job) is None
    told = {"batch": str(batch), "total": 20, "failed": 13, "policy": "best_effort"}
    assert results(database, hold.job) == {phases(database)[0]: told}
    ends = steps.rows(database, "SELECT status, result FROM pipeline.ends(%s, NULL, 0, 100)", batch)
    assert [row["status"] for row in reversed(ends)] == (["succeeded", "failed", "cancelled"] * 7)[:20]
    assert ends[-1]["result"] == {"of": str(found[-1])}
    assert [row["job_id"] for row in steps.admit(database)] == [hold.job]


def test_a_child_that_is_replayed_does_not_wake_its_parent_again(database: Db) -> None:
    hold = steps.held(database, "triple")
    [one] = children(database, spawn(database, hold, 1))
    end(database, one, "fail")
    parent = steps.hold(database, hold.job)
    assert steps.replay(database, one)
    end(database, one)
    assert steps.job(database, hold.job)["status"] == "running"
    assert steps.complete(database, parent)["verdict"] == "handed_over"


def test_a_job_without_children_does_not_wait(database: Db) -> None:
    hold = steps.held(database, "triple")
    spawn(database, hold, 0)
    assert [row["job_id"] for row in steps.admit(database)] == [hold.job]


def test_children_of_an_attempt_that_lost_its_job_never_existed(database: Db) -> None:
    hold = steps.held(database, "triple")
    steps.cancel(database, hold.job)
    with pytest.raises(AssertionError):
        spawn(database, hold, 3)
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs WHERE batch_id IS NOT NULL") == 0


def test_cancelling_a_job_cancels_its_children_and_theirs(database: Db) -> None:
    hold = steps.held(database, "triple")
    child, *rest = children(database, spawn(database, hold, 3, workflow="triple"))
    end(database, rest[-1], "cancel")
    grandchildren = children(database, spawn(database, steps.hold(database, child), 2))
    running = steps.hold(database, grandchildren[0])
    assert steps.cancel(database, hold.job)
    ended = [hold.job, child, *rest, *grandchildren]
    assert {steps.job(database, one)["status"] for one in ended} == {"cancelled"}
    assert steps.complete(database, running)["verdict"] == "lost"
    assert steps.one(database, "SELECT count(*) FROM pipeline.outbox") == 0
    assert steps.one(database, "SELECT count(*) FROM pipeline.batches WHERE completed_at IS NULL") == 0


@pytest.mark.parametrize(("policy", "how"), [("all", "fail"), ("any", "complete")])
def test_one_end_may_be_enough_and_the_other_children_are_cancelled(database: Db, policy: str, how: str) -> None:
    hold = steps.held(database, "triple")
    batch = spawn(database, hold, 4, policy)
    first, second, *rest = children(database, batch)
    end(database, first, "complete" if policy == "all" else "fail")
    assert waits(database, hold.job) is not None
    end(database, second, how)
    assert waits(database, hold.job) is None
    told = results(database, hold.job)[phases(database)[0]]
    assert (told["failed"], told.get("child")) == (1, str(second) if policy == "all" else None)
    assert steps.one(database, "SELECT pipeline.cancel_superfluous()") is True
    assert {steps.job(database, one)["status"] for one in rest} == {"cancelled"}
    assert steps.one(database, "SELECT pipeline.cancel_superfluous()") is False
    # The ends that came later woke nobody.
    assert steps.job(database, hold.job)["fence"] == hold.fence
    assert steps.batch(database, batch)["completed_at"] is not None


def test_a_parent_that_somebody_holds_is_woken_later_and_nobody_waits(database: Db, connect: Connect) -> None:
    hold, app = steps.held(database, "triple"), connect()
    [one] = children(database, spawn(database, hold, 1))
    with app.transaction():
        app.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (hold.job,))
        end(database, one)
        assert steps.job(database, one)["status"] == "succeeded"
        assert waits(database, hold.job) is not None
        assert steps.one(database, "SELECT pipeline.finish_batches()") is True
    assert steps.one(database, "SELECT pipeline.finish_batches()") is False
    assert waits(database, hold.job) is None


def test_children_of_children_end_somewhere(database: Db) -> None:
    hold = steps.held(database, "triple")
    for _ in range(10):
        [one] = children(database, spawn(database, hold, 1, workflow="triple"))
        hold = steps.hold(database, one)
    with pytest.raises(psycopg.Error, match="10 levels deep"):
        spawn(database, hold, 1)


def test_children_are_kept_until_their_parent_has_ended(database: Db) -> None:
    hold = steps.held(database, "triple")
    [one] = children(database, spawn(database, hold, 1))
    end(database, one)
    database.execute("UPDATE pipeline.jobs SET completed_at = completed_at - interval '9 days' WHERE id = %s", (one,))
    prune = "SELECT pipeline.prune('-1 day', 100)"
    assert steps.one(database, prune) == 0
    steps.cancel(database, hold.job)
    assert steps.one(database, prune) == 2


def test_verify_finds_a_wait_for_what_has_come_and_repairs_it(database: Db) -> None:
    told, parent = wait(database, event="approved"), steps.held(database, "triple")
    batch = spawn(database, parent, 1)
    assert steps.rows(database, "SELECT * FROM pipeline.verify(false)") == []
    database.execute("INSERT INTO pipeline.signals (job_id, name, body) VALUES (%s, 'approved', '5')", (told,))
    database.execute("UPDATE pipeline.batches SET answered_at = now() WHERE id = %s", (batch,))
    found = steps.rows(database, "SELECT * FROM pipeline.verify(true) ORDER BY subject")
    expected = [(told, "event:approved"), (parent.job, f"children:{batch}")]
    assert [(row["problem"], row["subject"], row["detail"]) for row in found] == sorted(
        ("waits for what has come", str(job), detail) for job, detail in expected
    )
    assert results(database, told) == {phases(database)[0]: 5}
    assert (waits(database, told), waits(database, parent.job)) == (None, None)


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
    assert told["Plan"]["Shared Hit Blocks"] + told["Plan"]["Shared Read Blocks"] < 200
