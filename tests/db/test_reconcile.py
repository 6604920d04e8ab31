"""The looks of reconciliation: jobs that nobody has claimed, messages that were overtaken, and what workers hold."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db

QUEUE = "single.act"


def sent(db: Db, seconds_ago: float, **options: Any) -> UUID:
    """A job whose message went out a while ago."""
    job = steps.submit(db, **options)
    steps.admit(db)
    db.execute(
        "UPDATE pipeline.outbox SET sent_at = now() - make_interval(secs => %s), sent_by = NULL WHERE job_id = %s",
        (seconds_ago, job),
    )
    return job


def begun(db: Db, seconds_ago: float, **options: Any) -> UUID:
    """A job whose message went out a while ago and was claimed now."""
    job = sent(db, seconds_ago, **options)
    assert steps.claim(db, job)["verdict"] == "claimed"
    db.execute("UPDATE pipeline.jobs SET sent_at = now() - make_interval(secs => %s) WHERE id = %s", (seconds_ago, job))
    return job


def unclaimed(db: Db) -> set[UUID]:
    return {row["job_id"] for row in steps.rows(db, "SELECT job_id FROM pipeline.unclaimed(now() - interval '5 s')")}


def overtaken(db: Db) -> set[UUID]:
    return {row["job_id"] for row in steps.rows(db, "SELECT job_id FROM pipeline.overtaken(now(), 60)")}


def in_hand(db: Db, asked_seconds_ago: float = 0) -> tuple[int, int]:
    statement = """SELECT held, unheard FROM pipeline.unstarted_messages(now() - make_interval(secs => %s), interval '1 minute')
                   WHERE queue = 'single.act'"""
    found = steps.rows(db, statement, asked_seconds_ago)
    return (found[0]["held"], found[0]["unheard"]) if found else (0, 0)


def sign_on(db: Db, worker: str, unstarted: dict[str, int] | None, *, alive: bool = True, age: float = 100) -> int:
    """A worker of four threads, started a while ago, whose last heartbeat said what it held."""
    number = steps.sign_on(db, worker, alive)
    db.execute(
        """UPDATE pipeline.workers SET threads = 4, queues = '{single.act}', started_at = now() - make_interval(secs => %s),
                  unstarted = %s WHERE no = %s""",
        (age, Jsonb(unstarted or {}), number),
    )
    return number


def resend(db: Db, found: int) -> int:
    return int(steps.one(db, "SELECT pipeline.resend(%s, now(), %s)", QUEUE, found))


def test_what_waits_and_was_sent_before_is_unclaimed(database: Db) -> None:
    """Neither what was sent since, nor what runs, nor what waits at the gate."""
    old = sent(database, 10)
    sent(database, 1)
    begun(database, 10)
    steps.submit(database)
    assert unclaimed(database) == {old}


def test_what_its_sender_has_not_seen_confirmed_is_not_judged(database: Db) -> None:
    """While RabbitMQ takes nothing, the message waits in the sender: sending again would pile up copies."""
    job = sent(database, 10)
    number = steps.sign_on(database, "sender")
    database.execute("UPDATE pipeline.outbox SET sent_by = %s WHERE job_id = %s", (number, job))
    database.execute("UPDATE pipeline.workers SET confirmed_at = now() - interval '1 minute'")
    assert unclaimed(database) == set()
    database.execute("UPDATE pipeline.workers SET confirmed_at = now()")
    assert unclaimed(database) == {job}


def test_a_message_sent_a_minute_before_one_whose_job_began_was_overtaken(database: Db) -> None:
    """A queue delivers in order."""
    old, young = sent(database, 100), sent(database, 60)
    begun(database, 20)
    assert overtaken(database) == {old}
    assert young in unclaimed(database)


def test_one_that_has_ended_overtook_as_well(database: Db) -> None:
    """Short jobs are seldom met running."""
    old = sent(database, 100)
    job = begun(database, 20)
    steps.complete(database, steps.Hold(job, 1))
    assert overtaken(database) == {old}


def test_a_higher_priority_overtakes_nobody(database: Db) -> None:
    """It goes first by right; a lower one does not."""
    sent(database, 100, priority=3)
    begun(database, 20, priority=5)
    assert overtaken(database) == set()
    begun(database, 20, priority=3)
    assert len(overtaken(database)) == 1


def test_a_job_that_was_carried_here_overtook_nobody(database: Db) -> None:
    """It had no message in this queue."""
    sent(database, 100)
    job = begun(database, 20)
    database.execute("UPDATE pipeline.jobs SET message_phase_id = 1 WHERE id = %s", (job,))
    assert overtaken(database) == set()


def test_a_worker_that_names_only_the_queues_it_holds_speaks_of_all(database: Db) -> None:
    """It serves hundreds of them; '*' stands for those it does not name."""
    sign_on(database, "another", {"*": 0, "small.queue": 3})
    assert in_hand(database, 5) == (0, 0)
    sign_on(database, "this", {"*": 0, QUEUE: 2})
    assert in_hand(database, 5) == (2, 0)


def test_a_worker_holds_what_its_last_heartbeat_said(database: Db) -> None:
    """If it came after RabbitMQ was asked."""
    sign_on(database, "w1", {QUEUE: 3})
    sign_on(database, "w2", {QUEUE: 0})
    assert in_hand(database, asked_seconds_ago=5) == (3, 0)


def test_a_living_worker_that_was_not_heard_since_may_hold_all_it_can_fetch(database: Db) -> None:
    """Its next heartbeat is worth waiting for; so may one of an older version, which never says."""
    sign_on(database, "w1", {QUEUE: 0})
    assert in_hand(database) == (8, 1)
    sign_on(database, "older", None)
    assert in_hand(database, asked_seconds_ago=5) == (8, 0)


def test_a_worker_that_died_a_moment_ago_may_hold_all_it_could_fetch(database: Db) -> None:
    """Until RabbitMQ has noticed. One that died long ago, or came later, holds nothing of then."""
    number = sign_on(database, "dead", {QUEUE: 0}, alive=False)
    sign_on(database, "later", {QUEUE: 7}, age=0)
    assert in_hand(database, asked_seconds_ago=-1) == (16, 1)
    database.execute("UPDATE pipeline.workers SET heartbeat_at = now() - interval '20 s' WHERE no = %s", (number,))
    assert in_hand(database, asked_seconds_ago=5) == (8, 0)
    database.execute("UPDATE pipeline.workers SET heartbeat_at = now() - interval '2 min' WHERE no = %s", (number,))
    assert in_hand(database, asked_seconds_ago=5) == (0, 0)


def test_more_jobs_than_messages_are_sent_again_under_a_new_number(database: Db) -> None:
    """All of the queue: which of them are lost cannot be told, and an old message is void."""
    jobs = [sent(database, 10) for _ in range(3)]
    with steps.nothing_changes(database):
        assert resend(database, found=3) == 0
    assert resend(database, found=2) == 3
    assert [steps.job(database, job)["send"] for job in jobs] == [2, 2, 2]
    assert resend(database, found=0) == 0, "they wait at the gate now"


def test_a_row_that_somebody_holds_counts_for_neither_side(database: Db, connect: Connect) -> None:
    """Its message may be with a worker that waits for the lock; nobody waits for it here."""
    held, *free = (sent(database, 10) for _ in range(3))
    application = connect()
    with application.transaction():
        application.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (held,))
        assert resend(database, found=2) == 0
        assert resend(database, found=1) == 2
    assert steps.job(database, held)["send"] == 1
    assert [steps.job(database, job)["send"] for job in free] == [2, 2]
