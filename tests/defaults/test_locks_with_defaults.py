"""F3: an application's transaction that stays open stops nobody but the jobs that it holds."""

from __future__ import annotations

from collections import Counter
from time import monotonic

import psycopg
import pytest

from pipeline import submit_many
from tests.place import Place

JOBS = 60


def pace(users: Place, workflow: str) -> float:
    """Jobs a second from the first to the last of a burst."""
    started = monotonic()
    jobs = submit_many(None, workflow, [{"do": "ledger", "n": n} for n in range(JOBS)])
    users.finished(*jobs, timeout=60)
    return JOBS / (monotonic() - started)


@pytest.mark.parametrize("ends", ["ROLLBACK", "COMMIT"])
def test_an_open_cancel_in_another_transaction_stops_no_other_job(users: Place, ends: str) -> None:
    """Neither of its own phase nor of others, though it holds as many running jobs as there are threads, and more that
    are queued. Those end properly afterwards, and none of their work is done again."""
    users.worker(threads=4)
    before = {name: pace(users, name) for name in ("everyday", "triple")}
    running = submit_many(None, "everyday", [{"do": "sleep", "seconds": 3, "n": n} for n in range(4)])
    for job in running:
        users.running(job)
    queued = submit_many(None, "everyday", [{"do": "ledger", "held": n} for n in range(20)])
    with psycopg.connect(users.database_url, autocommit=True) as app:
        app.execute("BEGIN")
        app.execute("SELECT pipeline.cancel_many(%s)", ([*running, *queued],))
        users.finished(*submit_many(None, "everyday", [{"n": n} for n in range(4)]), timeout=20)
        during = {name: pace(users, name) for name in ("everyday", "triple")}
        for name, rate in during.items():
            print(f"{name}: {rate:.0f} jobs/s beside an open cancel of 24 jobs, {before[name]:.0f} without")
        assert not [job for job in [*running, *queued] if users.job(job)["completed_at"]]
        app.execute(ends)
    rows = users.finished(*running, *queued, timeout=60)
    assert {row["status"] for row in rows} == {"cancelled" if ends == "COMMIT" else "succeeded"}
    assert {row["crashes"] for row in rows} == {0}
    done = Counter(one[0] for one in users.executions())
    assert [done[str(job)] for job in running] == [1] * 4
    users.until(lambda: users.depth("everyday.usual") == 0, 20, "every message to be acknowledged")


def test_more_locked_jobs_than_a_worker_may_prefetch_stop_nobody(users: Place) -> None:
    """Their messages are set aside, and the rest of the queue is worked off."""
    users.worker(threads=2)
    with psycopg.connect(users.database_url, autocommit=True) as app:
        held = submit_many(None, "small", [{"n": n} for n in range(5)])
        others = submit_many(None, "triple", [{"held": n} for n in range(40)])
        app.execute("BEGIN")
        for job in [*held, *others]:
            app.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (job,))
        more = submit_many(None, "triple", [{"n": n} for n in range(20)])
        users.finished(*more, timeout=60)
        app.execute("ROLLBACK")
    assert {row["status"] for row in users.finished(*held, *others, timeout=60)} == {"succeeded"}


def test_a_batch_that_an_application_adds_to_does_not_hold_its_children(users: Place) -> None:
    """They end, and the callback comes once the application has sealed and committed."""
    from pipeline import open_batch, seal_batch

    users.worker(threads=2)
    batch = open_batch(None, then="plain")
    children = submit_many(None, "everyday", [{"n": n} for n in range(6)], batch=batch)
    with psycopg.connect(users.database_url, autocommit=True) as app:
        app.execute("BEGIN")
        app.execute("SELECT 1 FROM pipeline.batches WHERE id = %s FOR UPDATE", (batch,))
        users.finished(*children, timeout=30)
        app.execute("COMMIT")
    seal_batch(None, batch)
    users.until(
        lambda: users.count("SELECT count(*) FROM pipeline.batches WHERE completed_at IS NOT NULL"), 20, "the batch"
    )
    assert users.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'plain'") == 1
