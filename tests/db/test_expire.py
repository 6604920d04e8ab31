"""pipeline.expire: a job that nobody has begun by its time never starts."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest

from tests.db import clock, steps, together
from tests.db.conftest import Connect
from tests.db.steps import Db

MINUTE = 60.0
CAUSE = "Expired: it had not begun by # UTC"


def expire_due(db: Db, most: int = 1000) -> float:
    return float(steps.one(db, "SELECT pipeline.expire_due(%s)", most))


def expired(db: Db, job: UUID) -> bool:
    return steps.job(db, job)["status"] == "failed" and steps.outcomes(db, job)[-1] == "expired"


def claim_and_commit(db: Db, asked: tuple[Any, ...]) -> steps.Row:
    [answer] = steps.claim_all(db, [asked])
    db.execute("COMMIT")
    return answer


def test_a_job_that_has_not_begun_by_its_time_fails_with_the_reason(database: Db) -> None:
    """Once; under a fence of its own, so that the history has room for it."""
    job = steps.submit(database, expires=MINUTE)
    with steps.nothing_changes(database):
        assert steps.expire(database, job) == 0
    clock.let_pass(database, MINUTE)
    assert steps.expire(database, job) == 1
    row = steps.job(database, job)
    assert (row["status"], row["fence"], row["send"], row["attempts"], row["cause"]) == ("failed", 1, 2, 0, CAUSE)
    assert row["error_message"].startswith("Expired: it had not begun by 2") and row["error_message"].endswith(" UTC")
    assert (steps.waiting(database, job), steps.outcomes(database, job)) == (None, ["expired"])
    with steps.nothing_changes(database):
        assert steps.expire(database, job) == 0


def test_a_job_that_has_begun_runs_on(database: Db) -> None:
    """Also when it waits again: its time was for the beginning."""
    hold = steps.held(database, expires=MINUTE)
    clock.let_pass(database, MINUTE)
    assert steps.expire(database, hold.job) == 0
    steps.retry(database, hold)
    assert expire_due(database) > 1
    assert steps.expire(database, hold.job) == 0
    steps.complete(database, steps.hold(database, hold.job))
    assert steps.job(database, hold.job)["status"] == "succeeded"


@pytest.mark.parametrize("options", [{}, {"due": 30.0}, {"due": 90.0}, {"rate_limit": "api"}])
def test_a_job_expires_wherever_it_waits(database: Db, options: dict[str, Any]) -> None:
    """At the gate, for its time, for its rate limit."""
    database.execute("SELECT pipeline.set_rate_limit('api', 1)")
    job = steps.submit(database, expires=MINUTE, **options)
    clock.let_pass(database, MINUTE)
    assert steps.admit(database) == []
    expire_due(database)
    assert expired(database, job)


def test_the_gate_and_a_claim_refuse_it_before_maintenance_was_there(database: Db) -> None:
    """A message that is out ends as a duplicate, also when it comes again."""
    sent, waits = steps.submit(database, expires=MINUTE), steps.submit(database, expires=MINUTE)
    assert [row["job_id"] for row in steps.admit(database, 1)] == [sent]
    clock.let_pass(database, MINUTE)
    assert steps.admit(database) == []
    asked = steps.ask(database, sent)
    assert [row["verdict"] for row in steps.claim_all(database, [asked, asked])] == ["expired"] * 2
    assert expired(database, sent) and not expired(database, waits)
    with steps.nothing_changes(database):
        assert [row["verdict"] for row in steps.claim_all(database, [asked])] == ["superseded"]


def test_a_place_that_was_taken_for_it_is_left(database: Db) -> None:
    """The next one of the pool goes."""
    steps.set_pool(database, "single.act", 1)
    job, other = steps.submit(database, expires=MINUTE), steps.submit(database)
    assert [row["job_id"] for row in steps.admit(database)] == [job]
    clock.let_pass(database, MINUTE)
    expire_due(database)
    assert [row["job_id"] for row in steps.admit(database)] == [other]


def test_of_a_claim_and_the_expiry_one_wins(connect: Connect, database: Db) -> None:
    """It runs, or it has failed; never both."""
    for _ in range(10):
        job, one, two = steps.submit(database, expires=MINUTE), connect(), connect()
        steps.admit(database)
        asked = steps.ask(database, job)
        # The claim's transaction is a little older than the expiry: for it the job may still begin.
        one.execute("BEGIN")
        one.execute("SELECT now()")
        database.execute("UPDATE pipeline.jobs SET expires_at = now() WHERE id = %s", (job,))
        works: list[Any] = [partial(claim_and_commit, one, asked), partial(steps.expire, two, job)]
        claim, count = together.at_once(works)
        row = steps.job(database, job)
        if claim["verdict"] == "claimed":
            assert (row["status"], count) == ("running", 0)
        else:
            assert (row["status"], count) == ("failed", 1) and claim["verdict"] in ("locked", "superseded")


def test_a_child_that_expires_ends_in_its_batch(database: Db) -> None:
    """As failed."""
    batch = steps.open_batch(database)
    steps.submit(database, batch=batch, expires=MINUTE)
    steps.seal(database, batch)
    clock.let_pass(database, MINUTE)
    expire_due(database)
    row = steps.batch(database, batch)
    assert (row["remaining"], row["failed"], row["completed_at"] is None) == (0, 1, False)


def test_an_expired_job_that_is_replayed_starts(database: Db) -> None:
    """Somebody asked for it."""
    job = steps.submit(database, expires=MINUTE)
    clock.let_pass(database, MINUTE)
    expire_due(database)
    assert steps.replay(database, job) is True
    assert steps.hold(database, job).fence == 2


# ---- when maintenance looks


def test_the_next_look_is_at_the_next_expiry(database: Db) -> None:
    """And before that a look costs nothing. Without one to come it is half a minute later."""
    assert 29 < expire_due(database) <= 30.01
    clock.let_pass(database, 31)
    job, _ = steps.submit(database, expires=10), steps.submit(database, expires=20)
    assert 9 < expire_due(database) <= 10
    clock.let_pass(database, 10)
    assert 9 < expire_due(database) <= 10
    assert expired(database, job)


def test_a_job_that_expires_before_the_next_look_tells_the_leader(database: Db, connect: Connect) -> None:
    """Only then: those that expire later are found by the look that is planned anyway."""
    listener = connect()
    listener.execute("LISTEN pipeline_maintenance")
    expire_due(database)
    for expires, told in ((60, False), (20, True), (25, False), (10, True), (15, False)):
        steps.submit(database, expires=expires)
        assert [n.payload for n in listener.notifies(timeout=0.2)] == ["expiry"] * told
    assert 9 < expire_due(database) <= 10


def test_what_somebody_has_locked_is_asked_for_again_and_the_others_expire(database: Db, connect: Connect) -> None:
    """An application keeps nobody waiting."""
    locked, free, other = steps.submit(database, expires=MINUTE), steps.submit(database, expires=MINUTE), connect()
    clock.let_pass(database, MINUTE)
    with other.transaction():
        other.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (locked,))
        assert 0.4 < expire_due(database) <= 0.51
        assert expired(database, free) and not expired(database, locked)
    clock.let_pass(database, 1)
    expire_due(database)
    assert expired(database, locked)


def test_many_expire_in_bounded_steps(database: Db) -> None:
    """The next look is at once, until none is left."""
    for _ in range(5):
        steps.submit(database, expires=MINUTE)
    clock.let_pass(database, MINUTE)
    for done, pause in ((2, 0.0), (4, 0.0), (5, 30.0)):
        clock.let_pass(database, 1)
        assert abs(expire_due(database, 2) - pause) <= 0.01
        failed = "SELECT count(*) FROM pipeline.jobs WHERE status = 'failed'"
        assert steps.one(database, failed) == done


def test_neither_end_of_time_is_a_mistake(database: Db) -> None:
    """For ever is no expiry; one that is long over is found at the next look."""
    submit = "SELECT pipeline.submit('single', p_expires => %s::timestamptz)"
    for_ever, over = (steps.one(database, submit, moment) for moment in ("infinity", "-infinity"))
    expire_due(database)
    assert steps.job(database, for_ever)["expires_at"] is None and expired(database, over)


def test_the_look_reads_those_that_expire_and_no_others(database: Db) -> None:
    """An index has them alone, however many jobs wait."""
    database.execute("SELECT count(*) FROM pipeline.submit_many('single', array_fill('{}'::jsonb, ARRAY[5000]))")
    steps.submit(database, expires=MINUTE)
    database.execute("ANALYZE pipeline.outbox")
    for query in (
        "SELECT job_id FROM pipeline.outbox WHERE expires_at <= now() ORDER BY expires_at LIMIT 1000",
        "SELECT min(expires_at) FROM pipeline.outbox WHERE expires_at > now()",
    ):
        plan = "\n".join(row["QUERY PLAN"] for row in steps.rows(database, f"EXPLAIN {query}"))
        assert "outbox_expires" in plan and "Seq Scan" not in plan
