"""Group commit: claims, steps and completions of all threads of a process go to PostgreSQL in one statement.

A batch is whatever gathered while the previous one was being committed, and what the threads that it answered hand
in right away. Attempts wait for their claims and steps, and for the completion of a job that they may continue with;
other completions are not waited for: the acknowledgement follows the commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol
from uuid import UUID

import psycopg
from sqlalchemy import Connection

from pipeline.declare.errors import database_is_unable
from pipeline.observe import failpoints, logs
from pipeline.store.engine import Wire, connect

if TYPE_CHECKING:
    from pipeline.broker.inbound import Delivery
    from pipeline.journey.attempt import Attempt
    from pipeline.store.gateway.settlement import Kept

HOLD_ALL = "SELECT pipeline.hold_all(%s::uuid[], %s::bigint[])"
# Whether this very statement moved the job: an earlier one may have, whose answer was lost.
COMPLETE_ALL = """SELECT verdict, fence, send, max_attempts, isolated, at, rate_limit,
        verdict IN ('done', 'handed_over') OR (verdict = 'continued' AND at = now())
    FROM pipeline.complete(%s, %s::uuid[], %s::bigint[], %s::jsonb[], %s::text[], %s::jsonb[]) ORDER BY place"""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """That was the last phase."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The job waits at the gate of its next phase."""


@dataclass(frozen=True, slots=True)
class Continued:
    """The job is this worker's again, in its next phase and under a new fence; the message at hand carries it."""

    fence: int
    send: int
    max_attempts: int
    isolated: bool
    at: datetime
    rate_limit: str | None = None


@dataclass(frozen=True, slots=True)
class Repeated:
    """This very attempt had committed before, and only the answer was lost."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The attempt no longer holds the job: nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Locked:
    """Another transaction holds the row: nothing was done, ask again."""


Completed = Succeeded | HandedOver | Continued | Repeated | Lost | Locked

# The answers that say no more than their name.
PLAIN: Final[dict[str, Completed]] = {
    "done": Succeeded(),
    "handed_over": HandedOver(),
    "repeated": Repeated(),
    "lost": Lost(),
    "locked": Locked(),
}


def hold_all(connection: Connection, completions: Sequence[Completion]) -> set[UUID]:
    """The jobs that these attempts hold, until the caller's transaction ends."""
    ids = _array(one.attempt.job_id.hex for one in completions)
    fences = _array(one.attempt.fence for one in completions)
    return {row[0] for row in connection.exec_driver_sql(HOLD_ALL, (ids, fences))}


class Answer(NamedTuple):
    """Whether it was this statement that moved the job, or an earlier one."""

    completed: Completed
    moved: bool


def complete_all(connection: Connection, worker_no: int, completions: Sequence[Completion]) -> list[Answer]:
    """End the phases of these jobs in the caller's transaction."""
    rows = connection.exec_driver_sql(COMPLETE_ALL, (worker_no, *_completion_values(completions)))
    return [
        Answer(
            read(
                verdict=verdict,
                fence=fence,
                send=send,
                max_attempts=most,
                isolated=isolated,
                at=at,
                rate_limit=rate_limit,
            ),
            moved,
        )
        for verdict, fence, send, most, isolated, at, rate_limit, moved in rows
    ]


def read(
    *,
    verdict: str,
    fence: int | None,
    send: int | None,
    max_attempts: int | None,
    isolated: bool | None,
    at: datetime | None,
    rate_limit: str | None,
) -> Completed:
    """A row of pipeline.complete. KeyError if the verdict is none that this code knows."""
    if verdict != "continued":
        return PLAIN[verdict]
    assert fence and send and max_attempts and at
    return Continued(fence, send, max_attempts, bool(isolated), at, rate_limit)


log = logs.get("pipeline.committer")

# Completions come first: a place that one job leaves can be taken by the next. All parts have the columns of Row.
COMPLETE = """SELECT place, verdict, max_attempts, fence, send, at,
        NULL AS body, NULL AS result, NULL::integer AS attempts, NULL::integer AS crashes,
        isolated, NULL::smallint AS priority, NULL AS holder, NULL AS trace_id, NULL AS span_id, rate_limit
    FROM pipeline.complete(%s, %s::uuid[], %s::bigint[], %s::jsonb[], %s::text[], %s::jsonb[])"""
KEEP = """SELECT place, verdict, NULL::integer AS max_attempts, NULL::bigint AS fence, NULL::bigint AS send,
        NULL::timestamptz AS at, NULL AS body, NULL AS result, NULL::integer AS attempts, NULL::integer AS crashes,
        NULL::boolean AS isolated, NULL::smallint AS priority, NULL AS holder, NULL AS trace_id, NULL AS span_id,
        NULL AS rate_limit
    FROM pipeline.keep_steps(%s::uuid[], %s::bigint[], %s::text[], %s::text[])"""
CLAIM = """SELECT place, verdict, max_attempts, fence, NULL AS send, NULL AS at,
        body::text, result::text, attempts, crashes, isolated, priority, holder, trace_id, span_id, rate_limit
    FROM pipeline.claim(%s, %s::uuid[], %s::text[], %s::bigint[], %s::bigint[], %s::timestamptz[])"""


class Row(NamedTuple):
    """A row of the statement: what all parts have, what only completions have, what only claims have.

    What a part does not have, or a verdict has no use for, is None.
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
    rate_limit: str | None

    def completed(self) -> Completed:
        """Read as the answer to a completion."""
        return read(
            verdict=self.verdict,
            fence=self.fence,
            send=self.send,
            max_attempts=self.max_attempts,
            isolated=self.isolated,
            at=self.at,
            rate_limit=self.rate_limit,
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
            rate_limit=self.rate_limit,
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
    "expired",
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
    rate_limit: str | None = None


class Signal(Protocol):
    """Tells whoever waits for an answer that it is there. How one waits for it depends on where one runs."""

    def set(self) -> None:
        """It is there. Saying so again changes nothing."""


# Seconds that a thread waits without looking up.
STRETCH = 0.5


class ThreadSignal:
    """For a thread that blocks until then. A lock costs a third of what threading.Event does."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        if self._lock.locked():
            self._lock.release()

    def wait(self) -> None:
        # Between two stretches an interrupt reaches the thread.
        while not self._lock.acquire(timeout=STRETCH):
            pass
        self._lock.release()


@dataclass(slots=True)
class Ask:
    """The wish to claim the job of a delivery."""

    job_id: UUID
    queue: str
    send: int | None
    sent_at: str | None
    delivery: Delivery
    signal: Signal = field(default_factory=ThreadSignal)
    answer: ClaimRow | BaseException | None = None

    def row(self) -> ClaimRow:
        """Once it is answered: verdict, fence, …"""
        if isinstance(self.answer, BaseException):
            raise self.answer
        assert self.answer is not None
        return self.answer

    def resolve(self, answer: ClaimRow | BaseException) -> None:
        self.answer = answer
        self.signal.set()


@dataclass(slots=True)
class Keep:
    """The wish to keep what a step of an attempt returned."""

    attempt: Attempt
    name: str
    value: str
    signal: Signal
    answer: Kept | BaseException | None = None

    def verdict(self) -> Kept:
        """Once it is answered."""
        if isinstance(self.answer, BaseException):
            raise self.answer
        assert self.answer is not None
        return self.answer

    def resolve(self, answer: Kept | BaseException) -> None:
        self.answer = answer
        self.signal.set()


@dataclass(slots=True)
class Completion:
    """A finished phase; ``continuing`` is the next one's queue if this worker may continue with the job.

    ``following``: what comes after it, if that is not the next phase at once (JSON, see pipeline.declare.waits.next).
    Whoever may continue waits for the ``signal``: until then its place is kept for the job.
    """

    attempt: Attempt
    result: str | None
    continuing: str | None = None
    following: str | None = None
    signal: Signal | None = None

    def answered(self) -> None:
        """The place is free. What is asked again later asks without it."""
        self.continuing = None
        if self.signal is not None:
            self.signal.set()


@dataclass(slots=True)
class Group:
    """What goes to PostgreSQL in one statement."""

    completions: list[Completion] = field(default_factory=list)
    keeps: list[Keep] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.completions) + len(self.keeps) + len(self.asks)

    def singly(self) -> Iterator[Group]:
        """Each by itself, in the order of the statement."""
        yield from (Group(completions=[one]) for one in self.completions)
        yield from (Group(keeps=[one]) for one in self.keeps)
        yield from (Group(asks=[one]) for one in self.asks)


class Answers(NamedTuple):
    """PostgreSQL's, in the order of what was handed in."""

    completed: list[Completed]
    kept: list[Kept]
    claimed: list[ClaimRow]


class GroupStatement:
    """A connection of its own that carries groups to PostgreSQL and insists on an answer."""

    def __init__(self, dsn: str, worker_id: str, worker_no: int, *, pooled: bool = False) -> None:
        self._dsn = dsn
        self._pooled = pooled
        self._worker_id = worker_id
        self._worker_no = worker_no
        self._connection: Wire | None = None

    def execute(self, group: Group) -> Answers:
        """Try until PostgreSQL answers. All functions give the same answer when a lost COMMIT is repeated."""
        delay = 0.05
        while True:
            try:
                return self._once(group)
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

    def _once(self, group: Group) -> Answers:
        if self._connection is None:
            self._connection = connect(self._dsn, "committer", pooled=self._pooled)
        parts: list[str] = []
        values: list[Any] = []
        if group.completions:
            parts.append(COMPLETE)
            values += self._worker_no, *_completion_values(group.completions)
        if group.keeps:
            parts.append(KEEP)
            values += _keep_values(group.keeps)
        if group.asks:
            parts.append(CLAIM)
            values += self._claim_values(group.asks)
        found = self._connection.execute(" UNION ALL ".join(parts), values, prepare=True).fetchall()
        if failpoints.armed:
            _reach(group)
        rows = [Row._make(row) for row in found]
        first, last = len(group.completions), len(group.completions) + len(group.keeps)
        done, kept, asked = (sorted(part, key=_PLACE) for part in (rows[:first], rows[first:last], rows[last:]))
        return Answers(
            [row.completed() for row in done], [row.verdict for row in kept], [row.claimed() for row in asked]
        )

    def _claim_values(self, asks: list[Ask]) -> tuple[Any, ...]:
        return (
            self._worker_id,
            _array(ask.job_id.hex for ask in asks),
            _array(ask.queue for ask in asks),
            _array(ask.send for ask in asks),
            _array(ask.delivery.id for ask in asks),
            _array(ask.sent_at for ask in asks),
        )


def _reach(group: Group) -> None:
    try:
        if group.asks:
            failpoints.reach("claim.committed")
        if group.keeps:
            failpoints.reach("step.committed")
        if group.completions:
            failpoints.reach("complete.committed")
    except failpoints.AnswerLost as lost:
        raise psycopg.OperationalError(str(lost)) from lost


def _completion_values(completions: Sequence[Completion]) -> tuple[Any, ...]:
    results = [c.result for c in completions]
    following = [c.following for c in completions]
    return (
        _array(c.attempt.job_id.hex for c in completions),
        _array(c.attempt.fence for c in completions),
        results if any(results) else _array(results),
        _array(c.continuing for c in completions),
        following if any(following) else _array(following),
    )


def _keep_values(keeps: Sequence[Keep]) -> tuple[Any, ...]:
    return (
        _array(keep.attempt.job_id.hex for keep in keeps),
        _array(keep.attempt.fence for keep in keeps),
        [keep.name for keep in keeps],
        [keep.value for keep in keeps],
    )


def _array(values: Iterable[int | str | None]) -> str:
    """PostgreSQL's text for an array of plain words: ids in hex (dashes cost), numbers, names of queues, moments."""
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"


# Threads that were just answered mostly have a short phase, and are back with its end and their next claim before
# long. Without waiting for them, half of the threads would always miss the commit that is just beginning.
# They are waited for as long as that commit took, but not if it met an outage.
LONGEST = 0.01
# A completion whose row another transaction holds waits beside the others and is asked for again.
LOCKED_PAUSE = 0.2


class Committer:
    """A thread with a connection of its own. ``on_completed`` hears of every committed batch."""

    def __init__(
        self,
        dsn: str,
        worker_id: str,
        worker_no: int,
        on_completed: Callable[[list[tuple[Completion, Completed]]], None],
        on_refused: Callable[[Completion, Exception], None],
        *,
        thread: Callable[[str, Callable[[], None]], threading.Thread],
        pooled: bool = False,
    ) -> None:
        self._statement = GroupStatement(dsn, worker_id, worker_no, pooled=pooled)
        self._on_completed = on_completed
        self._on_refused = on_refused
        self._group = Group()
        self._locked: list[Completion] = []
        self._ask_locked_at = 0.0
        self._changed = threading.Condition()
        self._busy = False
        self._idle = False
        self._answered = 0
        self._gather_until = 0.0
        self._stopping = False
        self._flushing = False
        self._flush_until = 0.0
        self._thread = thread("pipeline-committer", self._run)

    def start(self) -> None:
        self._thread.start()

    def claim(self, ask: Ask) -> None:
        """Claim, together with what others ask for. The signal comes after the commit."""
        with self._changed:
            self._group.asks.append(ask)
            self._wake()

    def keep(self, keep: Keep) -> None:
        """Keep a step, together with what others hand in. The signal comes after the commit."""
        with self._changed:
            self._group.keeps.append(keep)
            self._wake()

    def complete(self, completion: Completion) -> None:
        """Complete without waiting."""
        with self._changed:
            self._group.completions.append(completion)
            self._wake()

    def flush(self, timeout: float) -> bool:
        """Wait until everything handed in is committed. False if it was not in time, counted from the first call."""
        with self._changed:
            if not self._flushing:
                self._flush_until = monotonic() + timeout
            self._flushing = True
            return self._changed.wait_for(
                lambda: not (self._busy or self._group or self._locked),
                max(0.0, self._flush_until - monotonic()),
            )

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(5)

    def _wake(self) -> None:
        """Only when it has something to do: a wake-up costs as much as a row."""
        if self._idle or self._all_back():
            self._changed.notify()

    def _all_back(self) -> bool:
        back = len(self._group.completions) + len(self._group.keeps)
        return back >= self._answered or self._stopping or self._flushing

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                pause = max(0.0, self._ask_locked_at - monotonic()) if self._locked else None
                self._changed.wait_for(lambda: self._group or self._stopping, pause)
                self._idle = False
                if self._locked and monotonic() >= self._ask_locked_at:
                    self._group.completions += self._locked
                    self._locked = []
                if self._stopping and not self._group:
                    return
                if not self._group:
                    continue
                self._changed.wait_for(self._all_back, max(0.0, self._gather_until - monotonic()))
                group, self._group = self._group, Group()
                self._busy = True
            self._commit(group)
            with self._changed:
                self._busy = False
                if self._flushing:
                    self._changed.notify_all()

    def _commit(self, group: Group) -> None:
        started = monotonic()
        try:
            answers = self._statement.execute(group)
        except psycopg.Error as error:
            # One bad row must not fail its neighbours.
            if len(group) > 1:
                for one in group.singly():
                    self._commit(one)
            else:
                self._refused(group, error)
            return
        if group.completions:
            self._completed(list(zip(group.completions, answers.completed, strict=True)))
        self._answered = sum(answer.verdict == "claimed" for answer in answers.claimed)
        self._answered += sum(isinstance(answer, Continued) for answer in answers.completed)
        self._answered += sum(answer == "won" for answer in answers.kept)
        ended = monotonic()
        self._gather_until = ended + min(ended - started, LONGEST)
        for keep, kept in zip(group.keeps, answers.kept, strict=True):
            keep.resolve(kept)
        for ask, claimed in zip(group.asks, answers.claimed, strict=True):
            ask.resolve(claimed)

    def _refused(self, group: Group, error: psycopg.Error) -> None:
        for keep in group.keeps:
            keep.resolve(error)
        for ask in group.asks:
            ask.resolve(error)
        for completion in group.completions:
            self._on_refused(completion, error)
            completion.answered()

    def _completed(self, batch: list[tuple[Completion, Completed]]) -> None:
        locked = [completion for completion, completed in batch if isinstance(completed, Locked)]
        if locked:
            self._locked += locked
            self._ask_locked_at = monotonic() + LOCKED_PAUSE
            batch = [pair for pair in batch if not isinstance(pair[1], Locked)]
        if batch:
            self._on_completed(batch)
        for completion in (*locked, *(completion for completion, _ in batch)):
            completion.answered()
