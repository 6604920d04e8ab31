"""Jobs that share a key take turns with those of other keys, and wait for that in PostgreSQL."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold
from tests.db.test_admit import ENGINE, READ

# So many of a phase are sent and unclaimed at once (pipeline.turns_left).
AHEAD = 64
MANY = """SELECT pipeline.submit_many(%s, ARRAY(SELECT jsonb_build_object('customer', %s::text, 'number', n)
          FROM generate_series(1, %s) AS n)) AS id"""


def many(db: Db, workflow: str, customer: str, count: int) -> list[UUID]:
    return [row["id"] for row in steps.rows(db, MANY, workflow, customer, count)]


def sent(db: Db) -> list[str]:
    """The keys of what the gate lets through now, in the order in which it is sent."""
    return [row["body"]["customer"] for row in steps.admit(db)]


def claimed(db: Db, job: UUID) -> Hold:
    answer = steps.claim(db, job)
    assert answer["verdict"] == "claimed"
    return Hold(job, answer["fence"])


def finish(db: Db, hold: Hold, **options: Any) -> str:
    return str(steps.complete(db, hold, **options)["verdict"])


def states(db: Db, workflow: str) -> Counter[str]:
    found = steps.rows(
        db,
        """SELECT s.waits_for, s.state FROM pipeline.jobs j CROSS JOIN pipeline.job_status(ARRAY[j.id]) s
           WHERE j.workflow = %s""",
        workflow,
    )
    return Counter(row["waits_for"] or row["state"] for row in found)


def next_due(db: Db) -> tuple[float | None, bool]:
    [row] = steps.rows(db, "SELECT * FROM pipeline.next_due()")
    return row["seconds"], row["waiting"]


def test_a_late_key_goes_before_the_backlog_of_another(database: Db) -> None:
    """A hundred thousand jobs of one key delay another one's by what is in the broker already, and by its turns."""
    many(database, "fair", "large", 3000)
    assert sent(database) == ["large"] * AHEAD
    for name in "abcdefghij":
        many(database, "fair", name, 10)
    done: list[str] = []
    while Counter(done).total() - done.count("large") < 100:
        for job in steps.rows(database, "SELECT job_id FROM pipeline.outbox WHERE sent_at IS NOT NULL ORDER BY seq"):
            hold = claimed(database, job["job_id"])
            done.append(steps.job(database, hold.job)["body"]["customer"])
            finish(database, hold)
        sent(database)
    assert done.count("large") <= AHEAD + 2 * 100 / 10 + AHEAD


def test_every_key_that_waits_gets_one_turn_a_round(database: Db) -> None:
    for number in range(100):
        many(database, "fair", f"c-{number:03}", 3)
    rounds: Counter[str] = Counter()
    for _ in range(3):
        for job in steps.admit(database):
            rounds[job["body"]["customer"]] += 1
            finish(database, claimed(database, job["job_id"]))
    assert rounds.total() == 3 * AHEAD and len(rounds) == 100
    assert set(rounds.values()) == {1, 2}


def test_a_single_key_has_all_the_room(database: Db) -> None:
    """Nobody else waits: it is not made to wait for rounds."""
    many(database, "fair", "alone", 100)
    assert len(sent(database)) == AHEAD


def test_no_more_jobs_of_a_key_are_under_way_than_it_may_have(database: Db) -> None:
    """Also while they wait between phases, for a place or for the relay."""
    jobs = many(database, "shared", "a", 5) + many(database, "shared", "b", 1)
    assert Counter(sent(database)) == {"a": 2, "b": 1}
    first = claimed(database, jobs[0])
    assert finish(database, first) == "handed_over" and sent(database) == ["a"]
    assert states(database, "shared") == {"key": 3, "queued": 3}
    hold = claimed(database, jobs[0])
    assert finish(database, hold) == "done"
    assert sent(database) == ["a"]


def test_a_job_that_waits_leaves_its_turn_to_the_next(database: Db) -> None:
    """A retry, an event, children: whoever comes back waits for a turn like the others."""
    jobs = many(database, "shared", "a", 4)
    sent(database)
    one, two = claimed(database, jobs[0]), claimed(database, jobs[1])
    steps.retry(database, one, delay=60)
    assert len(sent(database)) == 1
    assert finish(database, two, following={"event": "approved"}) == "handed_over"
    assert len(sent(database)) == 1
    clock.let_pass(database, 61)
    assert sent(database) == [] and states(database, "shared") == {"key": 1, "event": 1, "queued": 2}
    assert steps.one(database, "SELECT pipeline.signal(%s, 'approved')", jobs[1]) == "delivered"
    assert sent(database) == [] and states(database, "shared") == {"key": 2, "queued": 2}
    finish(database, claimed(database, jobs[2]), following={"finish": True})
    assert len(sent(database)) == 1


@pytest.mark.parametrize("end", ["cancel", "delete", "fail"])
def test_whatever_ends_a_job_gives_its_turn_to_the_next(database: Db, end: str) -> None:
    jobs = many(database, "shared", "a", 3)
    sent(database)
    if end == "fail":
        hold = claimed(database, jobs[0])
        database.execute("SELECT pipeline.fail(%s, %s, 'no')", (hold.job, hold.fence))
    else:
        database.execute(f"SELECT pipeline.{end}({'ARRAY[%s::uuid]' if end == 'delete' else '%s'})", (jobs[0],))
    assert [row["job_id"] for row in steps.admit(database)] == [jobs[2]]


def test_a_crash_keeps_the_turn_and_a_replay_waits_for_one(database: Db) -> None:
    jobs = many(database, "shared", "a", 3)
    sent(database)
    hold = claimed(database, jobs[0])
    database.execute("SELECT pipeline.crash(%s, %s, 'crashed', 'died', true)", (hold.job, hold.fence))
    assert [row["job_id"] for row in steps.admit(database)] == [jobs[0]]
    database.execute("SELECT pipeline.cancel(%s)", (jobs[0],))
    assert [row["job_id"] for row in steps.admit(database)] == [jobs[2]]
    assert steps.one(database, "SELECT pipeline.replay(%s)", jobs[0]) is True
    assert sent(database) == [] and states(database, "shared") == {"key": 1, "queued": 2}


def test_in_order_the_oldest_goes_and_the_others_wait_until_it_has_ended(database: Db) -> None:
    """Also while it backs off, and whatever the others' priority is."""
    jobs = [steps.submit(database, "ordered", {"customer": "a"}, priority=priority) for priority in (0, 9, 5)]
    other = steps.submit(database, "ordered", {"customer": "b"})
    assert {row["job_id"] for row in steps.admit(database)} == {jobs[0], other}
    steps.retry(database, claimed(database, jobs[0]), delay=60)
    assert sent(database) == []
    clock.let_pass(database, 61)
    for job in jobs:
        assert [row["job_id"] for row in steps.admit(database)] == [job]
        assert sent(database) == []
        finish(database, claimed(database, job))


def test_a_key_that_is_blocked_keeps_no_other_key_waiting(database: Db) -> None:
    """A hundred keys whose oldest job backs off stand before one that could go."""
    jobs = [job for number in range(100) for job in many(database, "ordered", f"a-{number:03}", 2)]
    backing_off = 0
    while backing_off < 100:
        for row in steps.admit(database):
            steps.retry(database, claimed(database, row["job_id"]), delay=600)
            backing_off += 1
    assert len(jobs) == 200
    steps.submit(database, "ordered", {"customer": "z"})
    assert sent(database) == ["z"]


def test_more_keys_than_one_look_asks_are_all_asked(database: Db) -> None:
    """Two thousand keys have all they may have; the one that could go is found by looks that follow at once."""
    database.execute(
        """SELECT pipeline.submit_many('shared', ARRAY(SELECT jsonb_build_object('customer', format('c-%s', lpad(n::text, 4, '0')))
           FROM generate_series(1, 2000) AS n CROSS JOIN generate_series(1, 3)))"""
    )
    # As the gate would, over many looks.
    database.execute(
        """UPDATE pipeline.outbox SET has_turn = true, due_at = NULL, sent_at = now() WHERE job_id IN (
           SELECT job_id FROM (SELECT job_id, row_number() OVER (PARTITION BY key ORDER BY seq) AS n FROM pipeline.outbox) o WHERE n <= 2)"""
    )
    database.execute(
        """UPDATE pipeline.jobs SET status = 'running', fence = 1, locked_by = 'w1', locked_at = now(), heartbeat_at = now()
           WHERE id IN (SELECT job_id FROM pipeline.outbox WHERE has_turn)"""
    )
    steps.submit(database, "shared", {"customer": "zz"})
    looks = 0
    while not (found := sent(database)):
        assert next_due(database)[0] == 0, "nobody would look again"
        looks += 1
        assert looks < 10
    assert found == ["zz"]
    looks = 0
    while sent(database) == [] and next_due(database)[0] == 0:
        looks += 1
        assert looks < 10, "a round that gave nobody a turn ends the looking"


def test_two_relays_together_give_no_key_more_than_it_may_have(database: Db, connect: Connect) -> None:
    """One holds the turns of the workflow; the other one leaves them to it, and does not wait."""
    many(database, "shared", "a", 5)
    other = connect()
    with database.transaction():
        assert len(sent(database)) == 2
        assert sent(other) == []
    assert sent(other) == []


def test_nobody_waits_for_a_job_that_an_application_holds(database: Db, connect: Connect) -> None:
    jobs = many(database, "shared", "a", 3)
    other = connect()
    with database.transaction():
        database.execute("SELECT pipeline.cancel(%s)", (jobs[0],))
        database.execute("SELECT pipeline.pause_key('shared', 'b')")
        assert [row["job_id"] for row in steps.admit(other)] == jobs[1:]


def test_a_scheduled_job_waits_for_its_time_and_then_for_its_turn(database: Db) -> None:
    many(database, "shared", "a", 2)
    later = steps.submit(database, "shared", {"customer": "a"}, due=30)
    sent(database)
    clock.let_pass(database, 31)
    assert (
        sent(database) == []
        and steps.one(database, "SELECT waits_for FROM pipeline.job_status(ARRAY[%s])", later) == "key"
    )


def test_the_gate_reads_no_backlog_to_give_turns(database: Db) -> None:
    """G8: thirty thousand who wait are not read, whatever the planner believes of them."""
    database.execute(ENGINE)
    for name in ("a", "b", "c"):
        many(database, "fair", name, 10_000)
    for analyse in (False, True):
        if analyse:
            database.execute("VACUUM ANALYZE pipeline.jobs, pipeline.outbox, pipeline.phases")
        database.execute(
            "UPDATE pipeline.outbox SET has_turn = false, sent_at = NULL, due_at = 'infinity' WHERE has_turn"
        )
        with database.transaction():
            before = steps.one(database, READ)
            assert len(sent(database)) == AHEAD
            assert steps.one(database, READ) - before < AHEAD * 8
