"""pipeline.take_permits: the rate of a rate limit, kept by all who ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from time import monotonic
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db

HORIZON = 0.25


def rate_limit(db: Db, rate: float, burst: float) -> None:
    db.execute("SELECT pipeline.set_rate_limit('api', %s, %s)", (rate, burst))


def permits(db: Db, *jobs: UUID, calls: int = 1) -> list[dict[str, Any]]:
    """All ask in one statement: no time passes between them, however busy the machine is."""
    statement = """SELECT t.* FROM unnest(%s::uuid[]) WITH ORDINALITY AS a(job, place)
                   CROSS JOIN LATERAL (SELECT * FROM pipeline.take_permits('api', a.job, %s, %s) OFFSET 0) t ORDER BY a.place"""
    return steps.rows(db, statement, list(jobs), calls, HORIZON)


def permit(db: Db, job: UUID, calls: int = 1) -> dict[str, Any]:
    [row] = steps.rows(db, "SELECT * FROM pipeline.take_permits('api', %s, %s, %s)", job, calls, HORIZON)
    return row


def less_what_passed(seconds: float, began: float) -> Any:
    """Time passes between two statements, more of it on a busy machine."""
    passed = monotonic() - began
    return pytest.approx(seconds - passed / 2, abs=passed / 2 + 0.01)


def promise(db: Db, job: UUID, seconds: float) -> None:
    """The rate limit (one a second) is given out until then, and a second more."""
    db.execute(
        "INSERT INTO pipeline.permits VALUES (%s, 'api', 1, now() + make_interval(secs => %s), now() + make_interval(secs => %s))",
        (job, seconds, seconds + 1),
    )
    db.execute(
        "UPDATE pipeline.rate_limits SET next_at = now() + make_interval(secs => %s) WHERE name = 'api'", (seconds + 1,)
    )


def test_a_rate_limit_without_a_rate_has_no_limit(database: Db) -> None:
    """Nor has one that nobody made."""
    job = steps.submit(database)
    assert permit(database, job)["granted"] is None
    database.execute("SELECT pipeline.set_rate_limit('api', NULL)")
    assert permit(database, job)["granted"] is None


def test_a_full_bucket_is_spent_at_once_and_then_turns_come_at_the_rate(database: Db) -> None:
    """Two a second, a bucket of three: three now, then each half a second after the last."""
    rate_limit(database, 2, 3)
    jobs = [steps.submit(database) for _ in range(6)]
    answers = permits(database, *jobs)
    assert [a["granted"] for a in answers] == [1, 1, 1, 0, 0, 0]
    assert [a["wait"] for a in answers[3:]] == [pytest.approx(0.5 * n, abs=0.1) for n in (1, 2, 3)]
    assert {a["reason"] for a in answers[3:]} == {"rate_limit"}


def test_a_job_that_comes_back_at_its_moment_finds_its_permit_kept(database: Db) -> None:
    """Whoever asked in between stands behind it."""
    rate_limit(database, 1, 1)
    first, kept, late = (steps.submit(database) for _ in range(3))
    waits = [answer["wait"] for answer in permits(database, first, kept, late)]
    assert waits == [None, pytest.approx(1, abs=0.1), pytest.approx(2, abs=0.1)]
    clock.let_pass(database, 1.0)
    assert permit(database, kept)["granted"] == 1
    assert steps.one(database, "SELECT count(*) FROM pipeline.permits") == 1


def test_a_permit_that_was_not_used_in_time_is_void(database: Db) -> None:
    """Used late, it would let too many calls into one second."""
    rate_limit(database, 1, 1)
    first, missed = steps.submit(database), steps.submit(database)
    permit(database, first)
    permit(database, missed)
    clock.let_pass(database, 1.0)
    permit(database, first)
    clock.let_pass(database, 1.2)
    began = monotonic()
    promise(database, steps.submit(database), 4)
    assert permit(database, missed)["wait"] == less_what_passed(5, began)


def test_several_calls_are_one_permit(database: Db) -> None:
    """They wait for the last of their moments."""
    rate_limit(database, 2, 2)
    first, second = steps.submit(database), steps.submit(database)
    answers = permits(database, first, second, calls=2)
    assert answers[0]["granted"] == 2
    assert answers[1]["wait"] == pytest.approx(1.0, abs=0.1)


def test_a_fast_rate_limit_is_leased_in_portions(database: Db) -> None:
    """A tenth of a second's worth, so that not every call asks."""
    rate_limit(database, 500, 100)
    assert permit(database, steps.submit(database))["granted"] == 50


def test_a_paused_rate_limit_says_for_how_long_and_why(database: Db) -> None:
    """No permit is spent on it."""
    rate_limit(database, 5, 5)
    database.execute("SELECT pipeline.pause_rate_limit('api', now() + interval '30 seconds', 'retry_after')")
    answer = permit(database, steps.submit(database))
    assert (answer["granted"], answer["reason"]) == (0, "retry_after")
    assert answer["wait"] == pytest.approx(30, abs=0.5)


def test_twenty_who_ask_at_once_share_one_rate(database: Db, connect: Connect) -> None:
    """Their moments are all different."""
    # One in ten seconds: nobody's moment comes while the others are still asking.
    rate_limit(database, 0.1, 1)
    jobs = [steps.submit(database) for _ in range(20)]
    connections = [connect() for _ in jobs]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(permit, connections, jobs))
    moments = steps.rows(database, "SELECT at FROM pipeline.permits ORDER BY at")
    gaps = [(b["at"] - a["at"]).total_seconds() for a, b in pairwise(moments)]
    assert len(moments) == len(jobs) - 1, "one may call at once"
    assert gaps == [pytest.approx(10, abs=0.001)] * len(gaps)


@pytest.mark.parametrize("end", ["cancel", "delete", "fail"])
def test_the_moments_of_a_job_that_ends_are_free_at_once(database: Db, end: str) -> None:
    """A thousand seconds were promised to it; the next to ask waits for what is still promised, and no longer."""
    rate_limit(database, 1, 1)
    stays, ends = steps.held(database), steps.held(database)
    began = monotonic()
    promise(database, stays.job, 3)
    promise(database, ends.job, 1000)
    if end == "cancel":
        assert steps.cancel(database, ends.job)
    elif end == "delete":
        database.execute("SELECT pipeline.delete(%s)", ([ends.job],))
    else:
        assert steps.fail(database, ends) == "failed"
    assert permit(database, steps.submit(database))["wait"] == less_what_passed(4, began)


def test_what_is_given_back_is_not_given_out_twice(database: Db) -> None:
    """A permit that a worker has in its hands stays the only one of its second."""
    rate_limit(database, 1, 1)
    [first, last, *kept] = [steps.submit(database) for _ in range(20)]
    assert permit(database, first)["granted"] == 1
    granted = monotonic()
    assert {permit(database, job)["granted"] for job in kept} == {0}
    database.execute("SELECT pipeline.cancel_many(%s)", (kept,))
    wait = permit(database, last)["wait"]
    assert wait <= 1.25 and monotonic() - granted + wait >= 1


def test_a_job_that_is_back_before_its_moment_keeps_it(database: Db) -> None:
    """Its worker was shut down: no other worker sleeps for a permit that is seconds away."""
    rate_limit(database, 1, 1)
    early = steps.submit(database)
    began = monotonic()
    promise(database, early, 4)
    for _ in range(2):
        answer = permit(database, early)
        assert (answer["granted"], answer["reason"]) == (0, "rate_limit")
        assert answer["wait"] == less_what_passed(4, began)


def test_a_rate_limit_that_an_application_holds_is_waited_for_one_second(database: Db, connect: Connect) -> None:
    """PostgreSQL then says so, and the process turns it into a short wait."""
    rate_limit(database, 1, 1)
    job, application = steps.submit(database), connect()
    with application.transaction():
        application.execute("UPDATE pipeline.rate_limits SET burst = burst")
        began = monotonic()
        with pytest.raises(psycopg.errors.LockNotAvailable):
            permit(database, job)
        assert monotonic() - began < 2


def test_a_job_that_an_application_holds_holds_up_nobody_in_its_rate_limit(database: Db, connect: Connect) -> None:
    """It is being cancelled, say, in a transaction that stays open: its own permit waits, the others are granted."""
    rate_limit(database, 1, 1)
    cancelled, other, application = steps.submit(database), steps.submit(database), connect()
    began = monotonic()
    permit(database, cancelled)
    permit(database, cancelled)
    with application.transaction():
        steps.cancel(application, cancelled)
        assert permit(database, cancelled)["wait"] == 0.5
        assert permit(database, other)["wait"] == less_what_passed(2, began)


def test_whoever_gives_a_rate_limit_the_rate_it_has_locks_nothing(database: Db, connect: Connect) -> None:
    """As the beginning of a long transaction: start_match does so."""
    rate_limit(database, 1, 1)
    database.execute("SELECT pipeline.pause_rate_limit('other', now() + interval '1 hour', 'breaker')")
    with (application := connect()).transaction():
        application.execute("SELECT pipeline.set_rate_limit('api', 1, 1)")
        application.execute("SELECT pipeline.pause_rate_limit('other', now(), 'retry_after')")
        database.execute("SET lock_timeout = '100ms'")
        database.execute("UPDATE pipeline.rate_limits SET burst = burst")
