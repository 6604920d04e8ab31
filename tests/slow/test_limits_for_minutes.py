"""A rate of twenty a second kept by three processes for a minute, and after a minute in which PostgreSQL took nothing."""

from __future__ import annotations

import time
from bisect import bisect_left
from itertools import pairwise

import pytest

from tests.place import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
RATE, BURST, SECONDS, OUTAGE = 20, 10, 60, 60
EVERYBODY_ELSE = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
DONE = "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NOT NULL"


def calls(place: Place) -> list[float]:
    return sorted(float(line.split()[4]) for line in place.record_path.read_text().splitlines())


def busiest_second(moments: list[float]) -> int:
    """The most calls in any second, wherever it begins."""
    return max(bisect_left(moments, at + 1) - place for place, at in enumerate(moments))


def submit(place: Place, jobs: int) -> None:
    place.db.execute(
        "SELECT pipeline.submit_many('steady', ARRAY(SELECT '{}'::jsonb FROM generate_series(1, %s)))", (jobs,)
    )


def test_no_second_sees_more_than_rate_and_burst_and_an_outage_is_not_made_up(users: Place) -> None:
    users.load("tests.limit_workflows")
    for _ in range(3):
        users.worker(threads=8)
    jobs = RATE * SECONDS
    submit(users, jobs)
    users.until(lambda: users.count(DONE) == jobs, 3 * SECONDS, "a minute's jobs to end")
    moments = calls(users)
    took = moments[-1] - moments[0]
    print(f"\n{jobs} calls in {took:.1f} s, {busiest_second(moments)} in the busiest second")
    assert busiest_second(moments) <= RATE + BURST and took >= (jobs - BURST) / RATE - 1
    submit(users, jobs // 2)
    users.until(lambda: users.count(DONE) >= jobs + 100, SECONDS, "some more to end")
    users.db.execute(f"ALTER DATABASE {users.name} SET default_transaction_read_only = on")
    users.db.execute(EVERYBODY_ELSE)
    time.sleep(OUTAGE)  # the outage itself
    users.db.execute(f"ALTER DATABASE {users.name} RESET default_transaction_read_only")
    users.db.execute(EVERYBODY_ELSE)
    users.until(lambda: users.count(DONE) == jobs + jobs // 2, 3 * SECONDS, "the rest to end")
    moments = calls(users)
    gap = max(later - earlier for earlier, later in pairwise(moments))
    print(f"after {gap:.0f} s without a call {busiest_second(moments)} in the busiest second")
    assert gap > OUTAGE / 2 and busiest_second(moments) <= RATE + BURST
