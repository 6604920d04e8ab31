"""Group commit for phases that write: what they write and the ends of their phases share a transaction.

A batch is whatever gathered while the previous one was being committed. Rows are locked and fences checked first, in
one statement; then come the winners' writes, one after the other, their completions, in one statement, and COMMIT. If
anything is out of the ordinary, the batch is rolled back, and each of its jobs gets a transaction of its own: a write
may be called twice, and one call counts. So does, for a while, every write of the phase that was the cause.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from pipeline.declare.job import Write
from pipeline.observe import failpoints, logs
from pipeline.observe.instruments import count
from pipeline.store.group_commit import LONGEST, Completed, Completion, complete_all, hold_all
from pipeline.store.shared_connection import STATE, NotShared, SharedConnection, shared_engine, wire_of

log = logs.get("pipeline.committer")

# A batch holds its rows until the last of its writes is done.
MOST = 32
# A write that takes longer has a transaction of its own.
SHORT = 0.5
# How long a phase that was the cause of a rollback does not share, at first and at most.
ALONE, LONGEST_ALONE = 60.0, 3600.0


@dataclass(eq=False, slots=True)
class SharedWrite:
    """A completion with a write of its own. ``answer`` stays None if it must have its own transaction."""

    completion: Completion
    write: Write
    context: Context = field(default_factory=copy_context)
    answer: Completed | None = None
    batch: Batch | None = None
    answered: threading.Event = field(default_factory=threading.Event)

    @property
    def queue(self) -> str:
        return self.completion.attempt.spec.queue


@dataclass(eq=False, slots=True)
class Batch:
    """Writes that share a transaction, and whose it is just now."""

    writes: list[SharedWrite]
    current: SharedWrite | None = None
    until: float = 0.0
    given_up: bool = False

    def answer(self) -> None:
        for write in self.writes:
            write.answered.set()


class SharedWrites:
    """A thread with a connection of its own; never the one that claims."""

    def __init__(
        self,
        dsn: str,
        worker_no: int,
        *,
        thread: Callable[[str, Callable[[], None]], threading.Thread],
        pooled: bool = False,
    ) -> None:
        self._engine = partial(shared_engine, dsn, pooled=pooled)
        self._worker_no = worker_no
        self._make_thread = thread
        self._waiting: list[SharedWrite] = []
        self._alone: dict[str, tuple[float, float]] = {}
        self.suspects: set[str] = set()
        self._back = 0
        self._until = 0.0
        self._changed = threading.Condition()
        self._stopping = False
        self._started = False

    def complete(self, write: SharedWrite) -> Completed | None:
        """Commit it with others; waits for that. None if nothing is known of it, and it needs its own transaction."""
        with self._changed:
            if self._stopping or self._alone.get(write.queue, (0.0, 0.0))[0] > monotonic():
                return None
            self._waiting.append(write)
            if not self._started:
                self._begin()
            self._changed.notify()
        while not write.answered.wait(SHORT):
            self._look(write)
        return write.answer

    def leave_alone(self, queues: Iterable[str], reason: object) -> None:
        """The writes of these phases do not share for a while, twice as long every time."""
        for queue in set(queues):
            _, last = self._alone.get(queue, (0.0, ALONE / 2))
            seconds = min(2 * last, LONGEST_ALONE)
            self._alone[queue] = (monotonic() + seconds, seconds)
            count("writes.not_shared")
            log.info("writes get transactions of their own", queue=queue, seconds=seconds, reason=str(reason).strip())

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _begin(self) -> None:
        self._started = True
        self._make_thread("pipeline-writer", _Writer(self, self._engine(), self._worker_no).run).start()

    def _look(self, write: SharedWrite) -> None:
        """Give a batch up one of whose writes takes too long, in whatever: its thread is left to it."""
        with self._changed:
            batch = write.batch
            if batch is None or batch.given_up or (current := batch.current) is None or monotonic() < batch.until:
                return
            batch.given_up = True
            self._begin()
        self.leave_alone([current.queue], "a write took too long")
        batch.answer()

    def committed(self, batch: Batch, seconds: float) -> None:
        """Its threads are waited for, as long as the commit took: they run the next phase, or claim another job."""
        with self._changed:
            self._back = len(batch.writes)
            self._until = monotonic() + min(seconds, LONGEST)
        batch.answer()

    def next(self) -> Batch | None:
        """What has gathered, or None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            if not self._waiting:
                return None
            # As with other completions: threads that were just answered are back before long (group_commit.py).
            back = self._back
            self._changed.wait_for(lambda: len(self._waiting) >= back or self._stopping, self._until - monotonic())
            writes, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            batch = Batch(writes)
            for write in writes:
                write.batch = batch
            return batch


class _Writer:
    """Commits one batch after the other until a batch is given up: then another has taken its place."""

    def __init__(self, writes: SharedWrites, engine: Engine, worker_no: int) -> None:
        self._writes = writes
        self._worker_no = worker_no
        self._engine = engine
        self._connection: Connection | None = None
        self._state: Sequence[Any] = ()

    def run(self) -> None:
        while (batch := self._writes.next()) is not None:
            began = monotonic()
            try:
                self._commit(batch)
            except BaseException as error:
                self._rolled_back(batch, error)
            if batch.given_up:
                break
            self._writes.committed(batch, monotonic() - began)
        self._hang_up()

    def _commit(self, batch: Batch) -> None:
        connection = self._connection or self._connect()
        wire = wire_of(connection)
        with connection.begin():
            held = hold_all(connection, [write.completion for write in batch.writes])
            # What lost its job, or meets a locked row, is told so in a transaction of its own.
            winners = [write for write in batch.writes if write.completion.attempt.job_id in held]
            wire.batch = batch
            try:
                for write in winners:
                    batch.until, batch.current = monotonic() + SHORT, write
                    write.context.run(write.write, connection)
                    self._check(write, connection)
                batch.current = None
            finally:
                wire.batch = None
            self._compare(wire)
            # A write sees its job as it was while the phase ran.
            answers = complete_all(connection, self._worker_no, [write.completion for write in winners])
            if not all(answer.moved for answer in answers):
                raise NotShared("a job was not moved although it was held")
            if failpoints.armed:
                failpoints.reach("write.executed")
        if failpoints.armed:
            failpoints.reach("write.committed")
        for write, answer in zip(winners, answers, strict=True):
            write.answer = answer.completed

    def _check(self, write: SharedWrite, connection: Connection) -> None:
        wire = wire_of(connection) if not connection.closed else None
        if wire is None or wire.info.transaction_status != TransactionStatus.INTRANS:
            raise NotShared("it left no transaction behind")
        if write.queue in self._writes.suspects:
            self._compare(wire)
            self._writes.suspects.discard(write.queue)

    def _compare(self, wire: SharedConnection) -> None:
        if wire.execute(STATE).fetchone() != self._state:
            raise NotShared("it changed a setting")

    def _rolled_back(self, batch: Batch, error: BaseException) -> None:
        self._hang_up()
        # Whoever failed may have met what another left behind: they are looked at one by one, the next time.
        self._writes.suspects.update(write.queue for write in batch.writes)
        # A connection that was lost is nobody's fault.
        lost = isinstance(error, DBAPIError) and error.connection_invalidated
        if batch.current is not None and not batch.given_up and not lost:
            self._writes.leave_alone([batch.current.queue], error)

    def _connect(self) -> Connection:
        self._connection = self._engine.connect()
        with self._connection.begin():
            self._state = wire_of(self._connection).execute(STATE).fetchone() or ()
        return self._connection

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not connection.closed:
            connection.invalidate()
            connection.close()
