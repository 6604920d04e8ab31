"""Every number of the overview is the number that plain SQL counts, in each kind of state."""

from __future__ import annotations

from sqlalchemy import Engine

from pipeline.store.gateway import reading
from tests.db import steps
from tests.db.steps import FUTURE, Db

# Written without any function or view of ours, from the rows of jobs alone; only who was sent is known by the outbox.
COUNTED = """SELECT j.workflow || '.' || j.phase AS queue,
    count(*) FILTER (WHERE j.status = 'running') AS running,
    count(*) FILTER (WHERE j.status = 'retryable') AS retryable,
    count(*) FILTER (WHERE j.status = 'failed') AS failed,
    count(*) FILTER (WHERE j.status IN ('pending', 'retryable') AND o.sent_at IS NOT NULL) AS queued,
    count(*) FILTER (WHERE j.status IN ('pending', 'retryable') AND o.sent_at IS NULL) AS waiting
    FROM pipeline.jobs j LEFT JOIN pipeline.outbox o ON o.job_id = j.id GROUP BY 1"""
SCHEDULED = "SELECT pipeline.submit('single', '{}', p_due => now() + interval '1 h')"
NUMBERS = ("running", "retryable", "failed", "queued", "waiting")


def furnish(db: Db) -> None:
    """Something in each state; what is to wait at the gate comes after the last look of the relay."""
    steps.held(db)
    steps.retry(db, steps.held(db), FUTURE)
    steps.retry(db, steps.held(db), FUTURE)
    steps.fail(db, steps.held(db), "ValueError: no (shop.py:3)")
    steps.complete(db, steps.held(db))
    steps.cancel(db, steps.submit(db))
    steps.snooze(db, steps.held(db), FUTURE, reason="retry_after")
    db.execute(SCHEDULED)
    steps.held(db, "pooled")
    for workflow, n in (("pooled", 2), ("small", 7), ("single", 1)):
        for _ in range(n):
            steps.submit(db, workflow)
    steps.admit(db)
    steps.submit(db, "pooled")
    db.execute("SELECT pipeline.set_rate_limit('shop', 0.001, 1)")
    db.execute("SELECT pipeline.set_rate_limit('away', 1, 1)")
    db.execute("SELECT pipeline.pause_rate_limit('away', now() + interval '1 h', 'breaker')")
    for limit in ("shop", "shop", "away"):
        steps.submit(db, rate_limit=limit)
    steps.submit(db, "triple")
    db.execute("SELECT FROM pipeline.pause_phases('triple', 'first', 'infinity')")
    for _ in range(3):
        steps.submit(db)


def test_every_number_of_the_overview_is_what_sql_counts(database: Db, engine: Engine) -> None:
    """Phase by phase; and each wait is called by its reason."""
    furnish(database)
    with engine.begin() as connection:
        shown = {one.queue: one for one in reading.phases(connection, 10_000)}
    counted = {row["queue"]: [row[name] for name in NUMBERS] for row in steps.rows(database, COUNTED)}
    for queue, one in shown.items():
        numbers = [one.running, one.retryable, one.failed, one.queued, sum(one.waiting.values())]
        assert numbers == counted.get(queue, [0] * len(NUMBERS)), queue
    assert {queue: one.waiting for queue, one in shown.items() if one.waiting} == {
        "pooled.narrow": {"pool_full": 1},
        "single.act": {"backoff": 2, "rate_limit": 2, "breaker": 1, "retry_after": 1, "scheduled": 1, "sending": 3},
        "small.queue": {"queue_full": 2},
        "triple.first": {"paused": 1},
    }
    pooled = shown["pooled.narrow"]
    assert (pooled.pool, pooled.busy, pooled.error) == (3, 1, 0)
    assert [queue for queue, one in shown.items() if one.paused] == ["triple.first"]


def test_every_kind_of_worker_is_counted(database: Db, engine: Engine) -> None:
    """Alive, draining, not consuming, missing; who has gone is not."""
    numbers = {name: steps.sign_on(database, name) for name in ("w2", "w3", "w4", "w5", "w6")}
    assert steps.one(database, "SELECT pipeline.drain('w3', true)")
    database.execute("UPDATE pipeline.workers SET not_consuming = '{single.act}' WHERE id = 'w4'")
    steps.die(database, numbers["w5"])
    database.execute("UPDATE pipeline.workers SET stopped_at = now() WHERE id = 'w6'")
    others = steps.one(database, "SELECT count(*) FROM pipeline.workers WHERE no <> ALL (%s)", list(numbers.values()))
    with engine.begin() as connection:
        states = reading.worker_states(connection)
    assert {name: n for name, n in states.items() if name != "alive"} == {
        "draining": 1,
        "not_consuming": 1,
        "missing": 1,
    }
    assert states["alive"] == 1 + others
