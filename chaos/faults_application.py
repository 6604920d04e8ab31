"""What applications do to the database that they share with us: transactions that stay open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import psycopg

from chaos.fault import Hits, Scene, fault, now
from chaos.observer import until
from chaos.work import PHASES, check_others, insist, long_jobs, pace, submit_own
from pipeline import open_batch, seal_batch

COMPLETE = "SELECT completed_at IS NOT NULL AND total = %s FROM pipeline.batches WHERE id = %s"
BODY = '{"n": 0, "seconds": {"first": 0.1, "second": 0.1, "third": 0.1}}'
# Jobs that nobody holds take three seconds; on a busy machine more.
DONE_WITHIN = 12.0
Sql = psycopg.Connection[Any]


@fault("application's transaction holds a cancel, a batch and rows", explains=["released"])
def hold_rows(scene: Scene) -> Hits:
    """Its own jobs wait for it; all others go on. In the end it takes everything back, or commits."""
    if not scene.stage.subject.has_ledger:
        return Hits(0, "transactions: the phases of this workflow cannot be told to take their time")
    done, began = Hits(1), now()
    scene.pause(5, 6)
    before = pace(scene, began)
    cancelled, locked = long_jobs(scene, 4, 6), long_jobs(scene, 4, 6)
    batch, children = _batch(scene)
    commits, during, more = scene.chance.random() < 0.5, 0.0, list[UUID]()
    # A restart meanwhile, in a pair, takes everything back.
    with suppress(psycopg.OperationalError), _application(scene) as db:
        ended, added = _hold(db, cancelled, locked, batch)
        during = _wait(scene, done, [*cancelled, *locked, *children])
        db.commit() if commits else db.rollback()
        more, done.cancelled = (added, ended) if commits else ([], [])
    done.jobs = cancelled + locked + children + more
    done.unit = f"{'commit' if commits else 'rollback'} ({before:.1f} phases a second before, {during:.1f} meanwhile)"
    _check_batch(scene, batch, len(children) + len(more), done)
    return done


@fault("snapshot held for minutes")
def hold_snapshot(scene: Scene) -> Hits:
    """As a report or pg_dump does: what was deleted since stays, and must not slow the others down."""
    done, began = Hits(1, "snapshot"), now()
    with suppress(psycopg.OperationalError), _application(scene) as db:
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        db.execute("SELECT count(*) FROM pipeline.jobs")
        seconds = scene.times(15, 150)
        scene.pause(seconds, seconds)
        check_others(scene, done, [], began, DONE_WITHIN)
    return done


@contextmanager
def _application(scene: Scene) -> Iterator[Sql]:
    url = scene.stage.servers.postgres.url(scene.stage.name)
    with psycopg.connect(url, application_name="application") as connection:
        yield connection


def _batch(scene: Scene) -> tuple[UUID, list[UUID]]:
    """Open, with children that end while the transaction adds one more."""
    body = {"n": 0, "seconds": dict.fromkeys(PHASES, 1.5)}
    batch = insist(lambda: open_batch(None))
    return batch, submit_own(scene, scene.stage.subject.workflow, [body] * 6, batch=batch)


def _hold(db: Sql, cancelled: list[UUID], locked: list[UUID], batch: UUID) -> tuple[list[UUID], list[UUID]]:
    """Those that it cancelled, and those that it added: both count only if it commits."""
    ended = [job for job in cancelled if _first(db.execute("SELECT pipeline.cancel(%s)", (job,)))]
    more = db.execute("SELECT pipeline.submit('chaos', %s::jsonb, p_batch => %s)", (BODY, batch)).fetchall()
    db.execute("SELECT 1 FROM pipeline.jobs WHERE id = ANY (%s) ORDER BY id FOR UPDATE", (locked,))
    return ended, [row[0] for row in more]


def _first(cursor: psycopg.Cursor[Any]) -> Any:
    row = cursor.fetchone()
    return row[0] if row else None


def _wait(scene: Scene, done: Hits, held: list[UUID]) -> float:
    """The pace of the work meanwhile."""
    began = now()
    seconds = scene.times(15, 60)
    scene.pause(seconds, seconds)
    check_others(scene, done, held, began, DONE_WITHIN)
    return pace(scene, began)


def _check_batch(scene: Scene, batch: UUID, total: int, done: Hits) -> None:
    insist(lambda: seal_batch(None, batch))
    try:
        until(lambda: scene.observer.one(COMPLETE, total, batch), 60, f"the batch of {total} to be complete", pause=0.2)
    except TimeoutError as late:
        done.complaints.append(str(late))
