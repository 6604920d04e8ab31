"""pipeline_turn: the rate of a lane, kept by all who ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db

HORIZON = 0.25


def lane(db: Db, rate: float, burst: float) -> None:
    db.execute("SELECT pipeline_set_lane('api', %s, %s)", (rate, burst))


def turns(db: Db, *jobs: UUID, calls: int = 1) -> list[dict[str, Any]]:
    """All ask in one statement: no time passes between them, however busy the machine is."""
    statement = """SELECT t.* FROM unnest(%s::uuid[]) WITH ORDINALITY AS a(job, place)
                   CROSS JOIN LATERAL (SELECT * FROM pipeline_turn('api', a.job, %s, %s) OFFSET 0) t ORDER BY a.place"""
    return steps.rows(db, statement, list(jobs), calls, HORIZON)


def turn(db: Db, job: UUID, calls: int = 1) -> dict[str, Any]:
    [row] = steps.rows(db, "SELECT * FROM pipeline_turn('api', %s, %s, %s)", job, calls, HORIZON)
    return row


def test_a_lane_without_a_rate_has_no_limit(database: Db) -> None:
    """Nor has one that nobody made."""
    job = steps.submit(database)
    assert turn(database, job)["granted"] is None
    database.execute("SELECT pipeline_set_lane('api', NULL)")
    assert turn(database, job)["granted"] is None


def test_a_full_bucket_is_spent_at_once_and_then_turns_come_at_the_rate(database: Db) -> None:
    """Two a second, a bucket of three: three now, then each half a second after the last."""
    lane(database, 2, 3)
    jobs = [steps.submit(database) for _ in range(6)]
    answers = turns(database, *jobs)
    assert [a["granted"] for a in answers] == [1, 1, 1, 0, 0, 0]
    assert [a["wait"] for a in answers[3:]] == [pytest.approx(0.5 * n, abs=0.1) for n in (1, 2, 3)]
    assert {a["reason"] for a in answers[3:]} == {"rate_limit"}


def test_a_job_that_comes_back_at_its_moment_finds_its_turn_kept(database: Db) -> None:
    """Whoever asked in between stands behind it."""
    lane(database, 1, 1)
    first, kept, late = (steps.submit(database) for _ in range(3))
    waits = [answer["wait"] for answer in turns(database, first, kept, late)]
    assert waits == [None, pytest.approx(1, abs=0.1), pytest.approx(2, abs=0.1)]
    clock.let_pass(database, 1.0)
    assert turn(database, kept)["granted"] == 1
    assert steps.one(database, "SELECT count(*) FROM turns") == 1


def test_a_turn_that_was_not_used_in_time_is_void(database: Db) -> None:
    """Used late, it would let too many calls into one second."""
    lane(database, 1, 1)
    first, missed = steps.submit(database), steps.submit(database)
    turn(database, first)
    turn(database, missed)
    clock.let_pass(database, 1.0)
    turn(database, first)
    clock.let_pass(database, 1.2)
    database.execute("UPDATE lanes SET next_at = now() + interval '5 seconds' WHERE name = 'api'")
    assert turn(database, missed)["wait"] == pytest.approx(5, abs=0.1)


def test_several_calls_are_one_turn(database: Db) -> None:
    """They wait for the last of their moments."""
    lane(database, 2, 2)
    first, second = steps.submit(database), steps.submit(database)
    answers = turns(database, first, second, calls=2)
    assert answers[0]["granted"] == 2
    assert answers[1]["wait"] == pytest.approx(1.0, abs=0.1)


def test_a_fast_lane_is_leased_in_portions(database: Db) -> None:
    """A tenth of a second's worth, so that not every call asks."""
    lane(database, 500, 100)
    assert turn(database, steps.submit(database))["granted"] == 50


def test_a_paused_lane_says_for_how_long_and_why(database: Db) -> None:
    """No turn is spent on it."""
    lane(database, 5, 5)
    database.execute("SELECT pipeline_pause_lane('api', now() + interval '30 seconds', 'retry_after')")
    answer = turn(database, steps.submit(database))
    assert (answer["granted"], answer["reason"]) == (0, "retry_after")
    assert answer["wait"] == pytest.approx(30, abs=0.5)


def test_twenty_who_ask_at_once_share_one_rate(database: Db, connect: Connect) -> None:
    """Their moments are all different."""
    # One in ten seconds: nobody's moment comes while the others are still asking.
    lane(database, 0.1, 1)
    jobs = [steps.submit(database) for _ in range(20)]
    connections = [connect() for _ in jobs]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(turn, connections, jobs))
    moments = steps.rows(database, "SELECT at FROM turns ORDER BY at")
    gaps = [(b["at"] - a["at"]).total_seconds() for a, b in pairwise(moments)]
    assert len(moments) == len(jobs) - 1, "one may call at once"
    assert gaps == [pytest.approx(10, abs=0.001)] * len(gaps)
