"""One statement for the claims and completions of many threads: one round trip, one commit."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from time import sleep
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

import psycopg

from pipeline.declare.errors import database_is_unable
from pipeline.observe import logs
from pipeline.store.engine import Wire, connect
from pipeline.store.gateway import completion
from pipeline.store.gateway.completion import Completed

if TYPE_CHECKING:
    from pipeline.broker.delivery import Delivery
    from pipeline.journey.attempt import Attempt

log = logs.get("pipeline.committer")

# Completions come first: a place that one job leaves can be taken by the next. Both halves have the columns of Row.
COMPLETE = """SELECT place, verdict, max_attempts, fence, send, at,
        NULL AS body, NULL AS result, NULL::integer AS attempts, NULL::integer AS crashes,
        NULL::boolean AS isolated, NULL::smallint AS priority, NULL AS holder, NULL AS trace_id, NULL AS span_id
    FROM pipeline.complete(%s, %s::uuid[], %s::bigint[], %s::jsonb[], %s::text[])"""
CLAIM = """SELECT place, verdict, max_attempts, fence, NULL AS send, NULL AS at,
        body::text, result::text, attempts, crashes, isolated, priority, holder, trace_id, span_id
    FROM pipeline.claim(%s, %s::uuid[], %s::text[], %s::bigint[], %s::bigint[], %s::timestamptz[])"""


class Row(NamedTuple):
    """A row of the statement: what both halves have, what only completions have, what only claims have.

    What a half does not have, or a verdict has no use for, is None.
    """

    place: int
    verdict: Any
    max_attempts: int
    fence: int

    send: int | None
    at: datetime | None

    body: str
    result: str | None
    attempts: int
    crashes: int
    isolated: bool | None
    priority: int
    holder: str | None
    trace_id: str
    span_id: str

    def completed(self) -> Completed:
        """Read as the answer to a completion."""
        return completion.read(
            verdict=self.verdict, fence=self.fence, send=self.send, max_attempts=self.max_attempts, at=self.at
        )

    def claimed(self) -> ClaimRow:
        """Read as the answer to a claim."""
        return ClaimRow(
            verdict=self.verdict,
            max_attempts=self.max_attempts,
            fence=self.fence,
            attempts=self.attempts,
            crashes=self.crashes,
            isolated=self.isolated,
            priority=self.priority,
            holder=self.holder,
            body=self.body,
            result=self.result,
            trace_id=self.trace_id,
            span_id=self.span_id,
        )


_PLACE = attrgetter("place")

ClaimVerdict = Literal[
    "claimed",
    "running",
    "locked",
    "unknown_job",
    "other_phase",
    "superseded",
    "finished",
    "cancelled",
    "failed",
    "already_queued",
    "paused",
    "pool_full",
]


class ClaimRow(NamedTuple):
    """PostgreSQL's answer to a claim."""

    verdict: ClaimVerdict
    max_attempts: int
    fence: int
    attempts: int
    crashes: int
    isolated: bool | None
    priority: int
    holder: str | None
    body: str
    result: str | None
    trace_id: str
    span_id: str


@dataclass(slots=True)
class Ask:
    """A thread's wish to claim the job of a delivery."""

    job_id: UUID
    queue: str
    send: int | None
    sent_at: str | None
    delivery: Delivery
    answer: ClaimRow | BaseException | None = None
    _done: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._done.acquire()

    def wait(self) -> ClaimRow:
        """The claim's row: verdict, fence, …"""
        with self._done:
            pass
        if isinstance(self.answer, BaseException):
            raise self.answer
        assert self.answer is not None
        return self.answer

    def resolve(self, answer: ClaimRow | BaseException) -> None:
        self.answer = answer
        self._done.release()


@dataclass(slots=True)
class Completion:
    """A finished phase without writes of its own; ``continuing`` is the next one's queue if this worker may go on.

    The thread that may go on waits for the answer: until then its place is kept for the job.
    """

    attempt: Attempt
    result: str | None
    continuing: str | None = None
    _answered: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        self._answered.wait()

    def answer(self) -> None:
        """The thread is free. What is asked again later asks without it."""
        self.continuing = None
        self._answered.set()


class GroupStatement:
    """A connection of its own that carries groups to PostgreSQL and insists on an answer."""

    def __init__(self, dsn: str, worker_id: str, worker_no: int) -> None:
        self._dsn = dsn
        self._worker_id = worker_id
        self._worker_no = worker_no
        self._connection: Wire | None = None

    def execute(self, asks: list[Ask], completions: list[Completion]) -> tuple[list[Completed], list[ClaimRow]]:
        """Try until PostgreSQL answers. Both functions give the same answer when a lost COMMIT is repeated."""
        delay = 0.05
        while True:
            try:
                return self._once(asks, completions)
            except psycopg.Error as error:
                if not database_is_unable(error):
                    raise
                self._hang_up(error)
                log.warning("PostgreSQL cannot just now; trying again", delay=delay, error=str(error).strip())
                sleep(delay)
                delay = min(delay * 2, 2.0)

    def _hang_up(self, error: psycopg.Error) -> None:
        """A server that takes no writes may not be the one to ask any more: after a failover another is."""
        connection = self._connection
        if connection is None:
            return
        if connection.broken or connection.closed or isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            connection.close()
            self._connection = None

    def _once(self, asks: list[Ask], completions: list[Completion]) -> tuple[list[Completed], list[ClaimRow]]:
        if self._connection is None:
            self._connection = connect(self._dsn, "committer")
        parts: list[str] = []
        values: list[Any] = []
        if completions:
            parts.append(COMPLETE)
            values += self._completion_values(completions)
        if asks:
            parts.append(CLAIM)
            values += self._claim_values(asks)
        found = self._connection.execute(" UNION ALL ".join(parts), values, prepare=True).fetchall()
        rows = [Row._make(row) for row in found]
        done, asked = sorted(rows[: len(completions)], key=_PLACE), sorted(rows[len(completions) :], key=_PLACE)
        return [row.completed() for row in done], [row.claimed() for row in asked]

    def _claim_values(self, asks: list[Ask]) -> tuple[Any, ...]:
        return (
            self._worker_id,
            _array(ask.job_id.hex for ask in asks),
            _array(ask.queue for ask in asks),
            _array(ask.send for ask in asks),
            _array(ask.delivery.id for ask in asks),
            _array(ask.sent_at for ask in asks),
        )

    def _completion_values(self, completions: list[Completion]) -> tuple[Any, ...]:
        results = [c.result for c in completions]
        return (
            self._worker_no,
            _array(c.attempt.job_id.hex for c in completions),
            _array(c.attempt.fence for c in completions),
            results if any(results) else _array(results),
            _array(c.continuing for c in completions),
        )


def _array(values: Iterable[int | str | None]) -> str:
    """PostgreSQL's text for an array of plain words: ids in hex (dashes cost), numbers, names of queues, moments."""
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"
