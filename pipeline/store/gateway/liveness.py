"""A worker's sign of life: its row, its lock, the heartbeat of its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from pipeline.store.engine import Wire

REGISTER = """INSERT INTO pipeline.workers (id, host, pid, threads, queues, version)
    VALUES (%s, %s, %s, %s, %s, %s) RETURNING no"""
TAKE_LOCK = "SELECT pg_advisory_lock('pipeline.workers'::regclass::oid::integer, %s)"
HEARTBEAT = """SELECT job_id, fence, status
    FROM pipeline.heartbeat(%s, %s::uuid[], %s::bigint[], %s, %s, %s, %s, %s, %s, %s::uuid[])"""
IS_KNOWN = "SELECT EXISTS (SELECT 1 FROM pipeline.workers WHERE no = %s AND id = %s)"
NOTE_EPOCH = "SELECT pipeline.note_epoch()"
LISTEN = "LISTEN pipeline_worker"
DRAINING = "SELECT draining_at IS NOT NULL FROM pipeline.workers WHERE no = %s"
REFUND = "SELECT pipeline.refund_crash(%s, %s::uuid[], %s::bigint[])"
SIGN_OFF = "UPDATE pipeline.workers SET stopped_at = CASE WHEN %s THEN now() END, leaving = %s WHERE no = %s"


class Report(NamedTuple):
    """What a heartbeat says of the process; ``counters`` and ``unstarted`` are JSON, ``memory`` is in bytes.

    ``confirmed_at``: all that was sent before is confirmed.
    """

    confirmed_at: datetime | None
    counters: str
    not_consuming: list[str]
    unstarted: str
    stuck: int
    memory: int | None = None
    stuck_jobs: Sequence[str] = ()


class NotHeld(NamedTuple):
    """A job that the worker no longer holds under this fence; ``status`` is 'deleted' if there is no such job."""

    job_id: UUID
    fence: int
    status: str


def register(
    connection: Wire, worker_id: str, *, host: str, pid: int, threads: int, queues: Sequence[str], version: str = ""
) -> int:
    """The new worker's number."""
    row = connection.execute(REGISTER, (worker_id, host, pid, threads, queues, version)).fetchone()
    assert row is not None
    number: int = row[0]
    return number


def is_known(connection: Wire, worker_no: int, worker_id: str) -> bool:
    """False if PostgreSQL lost the row, and perhaps gave the number to another: it lost its last commits."""
    row = connection.execute(IS_KNOWN, (worker_no, worker_id)).fetchone()
    return bool(row and row[0])


def note_epoch(connection: Wire) -> None:
    """Note that this server took over from another, if it did: jobs can be claimed there then. Heartbeats do, too."""
    connection.execute(NOTE_EPOCH)


def take_lock(connection: Wire, worker_no: int) -> None:
    """Wait for the worker's lock, and hold it for as long as the connection lives."""
    connection.execute(TAKE_LOCK, (worker_no,))


def heartbeat(
    connection: Wire, worker_id: str, jobs: Sequence[UUID], fences: Sequence[int], report: Report
) -> list[NotHeld]:
    """Beat for these jobs. Returns those that the worker no longer holds."""
    values = (worker_id, [str(job) for job in jobs], fences, *report[:-1], list(report.stuck_jobs))
    return [NotHeld._make(row) for row in connection.execute(HEARTBEAT, values).fetchall()]


def listen(connection: Wire) -> None:
    """Be told at once when an operator wants something of a worker; the notice has its number."""
    connection.execute(LISTEN)


def is_draining(connection: Wire, worker_no: int) -> bool:
    """Whether an operator has asked this worker to take nothing new."""
    row = connection.execute(DRAINING, (worker_no,)).fetchone()
    return row is not None and bool(row[0])


def refund_crashes(connection: Wire, worker_id: str, fences: Mapping[UUID, int]) -> list[UUID]:
    """Take back the crashes that were counted while this worker only looked dead. Returns the jobs that are settled."""
    values = (worker_id, [str(job) for job in fences], list(fences.values()))
    return [row[0] for row in connection.execute(REFUND, values).fetchall()]


def sign_off(connection: Wire, worker_no: int, *, clean: bool) -> None:
    """Leave. Not ``clean``: there are jobs left to recover, at no cost."""
    connection.execute(SIGN_OFF, (clean, not clean, worker_no))
