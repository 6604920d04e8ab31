"""The gate, next_due and throttles beside an application that holds rows in a transaction which stays open (F3)."""

from __future__ import annotations

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db
from tests.db.test_rate_limit_gate import admitted, call, next_due, rate_limit


def test_nothing_at_the_gate_waits_for_an_application(database: Db, connect: Connect) -> None:
    """One that holds jobs, a rate limit or a phase in a transaction that stays open: the others go, and the relay does not spin."""
    application = connect()
    database.execute("SET lock_timeout = '100ms'")
    rate_limit(database, 10, 1)
    held, free = steps.submit(database, rate_limit="api"), steps.submit(database, rate_limit="api")
    due, other = steps.submit(database, due=1), steps.submit(database, due=1)
    paced, pacing = steps.submit(database, "paced"), steps.submit(database, "paced")
    clock.let_pass(database, 3)
    with application.transaction():
        for job in (held, due, paced):
            application.execute("SELECT 1 FROM pipeline.outbox WHERE job_id = %s FOR UPDATE", (job,))
            application.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (job,))
        application.execute("UPDATE pipeline.rate_limits SET burst = burst")
        assert sorted(admitted(database)) == sorted([free, other, pacing])
        seconds, _ = next_due(database)
        assert seconds is not None
        assert 0.1 <= seconds <= 0.5
    call(database, free)
    clock.let_pass(database, 1)
    assert sorted(admitted(database)) == sorted([held, due, paced])


def test_a_throttled_phase_whose_row_is_held_sends_nothing_past_its_throttle(database: Db, connect: Connect) -> None:
    """The other phases are sent to."""
    application = connect()
    database.execute("SET lock_timeout = '100ms'")
    jobs = [steps.submit(database, "paced") for _ in range(5)]
    other = steps.submit(database)
    with application.transaction():
        application.execute(
            "UPDATE pipeline.phases SET paused_until = NULL WHERE queue IN ('paced.slowly', 'single.act')"
        )
        assert admitted(database) == [other]
        database.execute("SELECT pipeline.pause('paced.slowly', 5)")
    assert admitted(database) == jobs[:2]


def test_a_paused_rate_limit_whose_row_is_held_is_paused_all_the_same(database: Db, connect: Connect) -> None:
    """Somebody is opening it, and has not committed."""
    application = connect()
    database.execute("SET lock_timeout = '100ms'")
    job = steps.submit(database, rate_limit="api")
    database.execute("SELECT pipeline.pause_rate_limit('api', now() + interval '1 hour', 'breaker')")
    with application.transaction():
        application.execute("SELECT pipeline.resume_rate_limit('api')")
        assert admitted(database) == []
    assert admitted(database) == [job]
