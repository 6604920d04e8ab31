"""The steps of a job as the tests take them: one small function for each SQL function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

Row = dict[str, Any]
Db = psycopg.Connection[Row]

FUTURE = 3600.0

# A process numbers what RabbitMQ delivers to it.
deliveries = count(1000)


@dataclass(frozen=True)
class Hold:
    """What a worker knows of the job it runs."""

    job: UUID
    fence: int
    worker: str = "w1"


# ---- looking


def rows(db: Db, statement: str, *values: Any) -> list[Row]:
    return db.execute(statement, values).fetchall()


def one(db: Db, statement: str, *values: Any) -> Any:
    """The only column of the only row."""
    [row] = rows(db, statement, *values)
    [value] = row.values()
    return value


def job(db: Db, job_id: UUID) -> Row:
    [row] = rows(db, "SELECT * FROM pipeline.jobs WHERE id = %s", job_id)
    return row


def waiting(db: Db, job_id: UUID) -> Row | None:
    """The job's row in the outbox."""
    found = rows(db, "SELECT * FROM pipeline.outbox WHERE job_id = %s", job_id)
    return found[0] if found else None


def history(db: Db, job_id: UUID) -> list[Row]:
    return rows(db, "SELECT * FROM pipeline.attempts WHERE job_id = %s ORDER BY fence", job_id)


def outcomes(db: Db, job_id: UUID) -> list[str]:
    return [row["outcome"] for row in history(db, job_id)]


def everything(db: Db) -> dict[str, list[Row]]:
    """Every row that a step could change."""
    return {
        "jobs": rows(db, "SELECT * FROM pipeline.jobs ORDER BY id"),
        "outbox": rows(db, "SELECT * FROM pipeline.outbox ORDER BY job_id"),
        "attempts": rows(db, "SELECT * FROM pipeline.attempts ORDER BY job_id, fence"),
        "steps": rows(db, "SELECT * FROM pipeline.steps ORDER BY job_id, phase, name"),
        "signals": rows(db, "SELECT * FROM pipeline.signals ORDER BY job_id, seq"),
        "batches": rows(db, "SELECT * FROM pipeline.batches ORDER BY id"),
        "places": rows(db, "SELECT * FROM pipeline.places ORDER BY phase_id, number"),
        "keys": rows(db, "SELECT * FROM pipeline.keys ORDER BY workflow, key"),
        "tags": rows(db, "SELECT * FROM pipeline.tags ORDER BY tag, job_id"),
    }


@contextmanager
def nothing_changes(db: Db) -> Iterator[None]:
    before = everything(db)
    yield
    assert everything(db) == before


# ---- submitting and sending


def submit(db: Db, workflow: str = "single", body: Row | None = None, **named: Any) -> UUID:
    """Options: priority, batch, traceparent, key, rate_limit, unique, tags; in seconds from now: due, debounce, expires."""
    due, debounce, expires = (named.pop(name, None) for name in ("due", "debounce", "expires"))
    found: UUID = one(
        db,
        """SELECT pipeline.submit(%s, %s, %s, %s, %s, %s, now() + make_interval(secs => %s::float), %s, %s,
            make_interval(secs => %s::float), %s::text[], now() + make_interval(secs => %s::float))""",
        workflow,
        Jsonb(body or {}),
        named.pop("priority", 0),
        *(named.pop(name, None) for name in ("batch", "traceparent", "key")),
        due,
        named.pop("rate_limit", None),
        named.pop("unique", None),
        debounce,
        named.pop("tags", None),
        expires,
    )
    assert not named, f"unknown options {named}"
    return found


def admit(db: Db, most: int = 1000, sender: int = 1, *, asleep: bool = False) -> list[Row]:
    found = rows(db, "SELECT * FROM pipeline.admit(%s, %s, '{}', %s)", sender, most, asleep)
    return [row for row in found if row["job_id"] is not None]


def set_pool(db: Db, queue: str, pool: int | None) -> None:
    """As ``pipeline migrate`` does."""
    db.execute("UPDATE pipeline.phases SET pool = %s WHERE queue = %s", (pool, queue))
    db.execute("SELECT pipeline.set_places(id, pool) FROM pipeline.phases WHERE queue = %s", (queue,))


def unsend(db: Db, job_id: UUID, send: int, reason: str = "unconfirmed") -> int:
    return int(one(db, "SELECT pipeline.unsend(%s::uuid[], %s::bigint[], %s)", [job_id], [send], reason))


# ---- claiming


def ask(db: Db, job_id: UUID, send: int | None = -1, delivery: int | None = None) -> tuple[Any, ...]:
    """A wish to claim, by default with the job's present send number."""
    row = job(db, job_id)
    return (
        job_id,
        f"{row['workflow']}.{row['phase']}",
        row["send"] if send == -1 else send,
        delivery or next(deliveries),
    )


def claim_all(db: Db, asks: list[tuple[Any, ...]], worker: str = "w1") -> list[Row]:
    ids, queues, sends, deliveries = (list(column) for column in zip(*asks, strict=True))
    return rows(
        db,
        "SELECT * FROM pipeline.claim(%s, %s::uuid[], %s::text[], %s::bigint[], %s::bigint[], %s::timestamptz[]) ORDER BY place",
        worker,
        ids,
        queues,
        sends,
        deliveries,
        [None] * len(ids),
    )


def claim(db: Db, job_id: UUID, worker: str = "w1", send: int | None = -1, delivery: int | None = None) -> Row:
    [answer] = claim_all(db, [ask(db, job_id, send, delivery)], worker)
    return answer


def hold(db: Db, job_id: UUID, worker: str = "w1") -> Hold:
    """Send the job and claim it."""
    admit(db)
    answer = claim(db, job_id, worker)
    assert answer["verdict"] == "claimed", answer
    return Hold(job_id, answer["fence"], worker)


def held(db: Db, workflow: str = "single", worker: str = "w1", **options: Any) -> Hold:
    """A new job that runs."""
    return hold(db, submit(db, workflow, **options), worker)


# ---- ending an attempt


def complete(
    db: Db,
    hold: Hold,
    result: Row | None = None,
    worker_no: int = 1,
    *,
    continuing: str | None = None,
    following: Row | None = None,
) -> Row:
    [answer] = rows(
        db,
        "SELECT * FROM pipeline.complete(%s, %s::uuid[], %s::bigint[], %s::jsonb[], %s::text[], %s::jsonb[])",
        worker_no,
        [hold.job],
        [hold.fence],
        [None if result is None else Jsonb(result)],
        [continuing],
        [None if following is None else Jsonb(following)],
    )
    return answer


def processor(db: Db, job_id: UUID) -> int | None:
    """The number of the place that the job has in its phase's pool."""
    found = rows(db, "SELECT number FROM pipeline.places WHERE job_id = %s", job_id)
    return int(found[0]["number"]) if found else None


def retry(db: Db, hold: Hold, delay: float = 0.0, error: str = "away") -> str:
    return str(one(db, "SELECT pipeline.retry(%s, %s, %s, %s)", hold.job, hold.fence, error, delay))


def fail(db: Db, hold: Hold, error: str = "not found") -> str:
    return str(one(db, "SELECT pipeline.fail(%s, %s, %s)", hold.job, hold.fence, error))


def snooze(
    db: Db,
    hold: Hold,
    delay: float = 0.0,
    outcome: str = "snoozed",
    reason: str = "rate_limit",
    *,
    asked: bool = False,
    error: str | None = None,
) -> str:
    values = (hold.job, hold.fence, outcome, reason, delay, error, asked)
    return str(one(db, "SELECT pipeline.snooze(%s, %s, %s, %s, %s, %s, %s)", *values))


def crash(db: Db, hold: Hold, counts: bool = True, outcome: str = "crashed") -> str:
    return str(one(db, "SELECT pipeline.crash(%s, %s, %s, 'signal 9', %s)", hold.job, hold.fence, outcome, counts))


def take_over(db: Db, hold: Hold, worker: str = "w2", send: int | None = None, delivery: int | None = None) -> str:
    """``hold`` is the old holder's."""
    number = job(db, hold.job)["send"] if send is None else send
    values = (worker, hold.job, number, hold.worker, hold.fence, delivery or next(deliveries))
    return str(one(db, "SELECT pipeline.take_over(%s, %s, %s, %s, %s, %s)", *values))


def reclaim(db: Db) -> list[Row]:
    """As if everybody who is suspect now had been seen before."""
    silent = rows(db, "SELECT job_id, fence FROM pipeline.silent_jobs('1 day') WHERE stale")
    statement = "SELECT * FROM pipeline.reclaim(ARRAY(SELECT pipeline.missing_workers()), %s::uuid[], %s::bigint[])"
    return rows(db, statement, [row["job_id"] for row in silent], [row["fence"] for row in silent])


# ---- from outside


def cancel(db: Db, job_id: UUID) -> bool:
    return bool(one(db, "SELECT pipeline.cancel(%s)", job_id))


def discard(db: Db, job_id: UUID) -> bool:
    return bool(one(db, "SELECT pipeline.discard(%s, 'given up')", job_id))


def replay(db: Db, job_id: UUID, send: int | None = None) -> bool:
    return bool(one(db, "SELECT pipeline.replay(%s, %s)", job_id, send))


def undeliverable(db: Db, job_id: UUID, send: int) -> bool:
    return bool(one(db, "SELECT pipeline.undeliverable(%s, %s, 'delivery limit')", job_id, send))


def expire(db: Db, *jobs: UUID) -> int:
    return int(one(db, "SELECT pipeline.expire(%s::uuid[])", list(jobs)))


def open_batch(db: Db, then: str | None = None, body: Any = None) -> UUID:
    found: UUID = one(db, "SELECT pipeline.open_batch(%s, %s)", then, Jsonb({} if body is None else body))
    return found


def seal(db: Db, batch: UUID) -> None:
    db.execute("SELECT pipeline.seal_batch(%s)", (batch,))


def batch(db: Db, batch_id: UUID) -> Row:
    [row] = rows(db, "SELECT * FROM pipeline.batches WHERE id = %s", batch_id)
    return row


# ---- workers


def sign_on(db: Db, worker: str, alive: bool = True) -> int:
    """Register a worker; it is alive while ``db`` holds its lock."""
    adding = "INSERT INTO pipeline.workers (id, host, pid, threads, queues) VALUES (%s, 'h', 1, 1, '{}') RETURNING no"
    number = int(one(db, adding, worker))
    if alive:
        db.execute("SELECT pg_advisory_lock('pipeline.workers'::regclass::oid::integer, %s)", (number,))
    return number


def die(db: Db, number: int) -> None:
    db.execute("SELECT pg_advisory_unlock('pipeline.workers'::regclass::oid::integer, %s)", (number,))


def wrong_fences(hold: Hold) -> list[Hold]:
    return [replace(hold, fence=hold.fence + step) for step in (-1, 1)]
