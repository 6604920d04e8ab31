"""F1: living workers are never taken for dead, and dead ones are found at once."""

from __future__ import annotations

from statistics import median
from time import monotonic

import pytest

from pipeline import submit
from tests.pace import Pace, pace
from tests.place import Place

LOSE_LIVENESS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'pipeline liveness'"""
HELD = "SELECT pipeline.alive(id) AS held FROM pipeline.workers WHERE pid = %s"
TIMES = 50


def test_a_lost_connection_is_back_before_anybody_looks_twice(users: Place) -> None:
    """Fifty times: the lock is held again within half a second, nobody takes over, no crash is counted."""
    users.worker(threads=2)
    jobs = [submit(None, "everyday", {"do": "sleep", "seconds": 15, "n": n}) for n in range(2)]
    for job in jobs:
        users.running(job)
    pid = users.holder(jobs[0])
    took = []
    with pace(users.database_url) as machine:
        for _ in range(TIMES):
            users.db.execute(LOSE_LIVENESS)
            started = monotonic()
            users.until(lambda: users.rows(HELD, pid)[0]["held"], 30, "the lock to be held again")
            took.append(monotonic() - started)
    print(f"lock held again after a lost connection: median {median(took):.3f} s, worst {max(took):.3f} s of {TIMES}")
    assert max(took) < machine.allows(0.5)
    rows = users.finished(*jobs, timeout=60)
    assert [(row["status"], row["fence"], row["crashes"]) for row in rows] == [("succeeded", 1, 0)] * 2
    assert users.counter("taken_over") == 0


@pytest.mark.timeout(240)
def test_a_killed_workers_jobs_run_elsewhere_at_once(users: Place) -> None:
    """G7: within two seconds, the median below one."""
    users.worker(threads=2)
    took: list[float] = []
    paces: list[Pace] = []
    for _ in range(5):
        users.worker(threads=2)
        job = submit(None, "everyday", {"do": "sleep", "seconds": 30, "later": 0})
        users.running(job)
        users.until(lambda: users.executions() and users.executions()[-1][0] == str(job), 10, "it to begin")  # noqa: B023
        with pace(users.database_url) as machine:
            took.append(users.kill_holder(job))
        paces.append(machine)
        users.finished(job)
    print(f"killed workers' jobs run elsewhere: median {median(took):.2f} s, worst {max(took):.2f} s of {len(took)}")
    slowest = max(paces, key=lambda one: one.slowest)
    assert median(took) < slowest.allows(1) and max(took) < slowest.allows(2)


def test_a_restart_of_postgresql_costs_nobody_a_crash(users: Place) -> None:
    """Every lock is free for a moment, and every heartbeat is old."""
    users.worker(threads=2)
    users.worker(threads=2)
    jobs = [submit(None, "everyday", {"do": "sleep", "seconds": 8, "n": n}) for n in range(4)]
    for job in jobs:
        users.running(job)
    users.db.execute("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()""")
    assert users.servers.rabbitmq.close_connections(users.vhost)
    rows = users.finished(*jobs, timeout=60)
    assert [(row["status"], row["fence"], row["crashes"]) for row in rows] == [("succeeded", 1, 0)] * 4
