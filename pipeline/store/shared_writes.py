"""Group commit for phases that write: what they write and the ends of their phases share a transaction.

A batch is whatever gathered while the previous one was being committed. The completions come first, in one statement,
which locks the rows and checks the fences; then the winners' writes, one after the other; then COMMIT. If anything is
out of the ordinary, the batch is rolled back, and each of its jobs gets a transaction of its own: a write may be called
twice, and one call counts. So does, for a while, every write of the phase that was the cause.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import lru_cache
from time import monotonic
from typing import Any, NoReturn, cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.sql import Composable
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool

from pipeline.declare.job import Write, decode
from pipeline.observe import failpoints, logs
from pipeline.observe.instruments import count
from pipeline.store.engine import KEEPALIVE
from pipeline.store.group_commit import LONGEST, Completed, Completion, complete_all

log = logs.get("pipeline.committer")

# A batch holds its rows until the last of its writes is done.
MOST = 32
# What takes longer has a transaction of its own. The first three are the server's to keep.
LIMITS = "-c lock_timeout=100ms -c statement_timeout=250ms -c idle_in_transaction_session_timeout=500ms"
SHORT = 0.5
# How long a phase that was the cause of a rollback does not share, at first and at most.
ALONE, LONGEST_ALONE = 60.0, 3600.0
# What a write could leave behind for the one after it, apart from what it may not say at all.
STATE = """SELECT current_user, current_setting('search_path'), current_setting('TimeZone'),
    current_setting('lock_timeout'), current_setting('statement_timeout'),
    current_setting('session_replication_role'), current_setting('row_security')"""
SHAREABLE = re.compile(
    r"(\s|--[^\n]*\n|/\*.*?\*/|\()*(insert|update|delete|merge|select|with|values|savepoint|release|rollback\s+to)\b",
    re.IGNORECASE | re.DOTALL,
)
# Several statements in one, and functions whose effect is not the transaction's alone.
NOT_SHAREABLE = re.compile(r";\s*\S|set_config|pg_advisory_lock|pg_try_advisory_lock", re.IGNORECASE)


class NotShared(Exception):
    """The write needs a transaction of its own."""


@lru_cache(maxsize=1024)
def may_share(statement: str) -> bool:
    """Whether it changes rows and nothing else: no setting, no transaction, no table."""
    return SHAREABLE.match(statement) is not None and NOT_SHAREABLE.search(statement) is None


class SharedConnection(psycopg.Connection[TupleRow]):
    """A connection that lends itself to writes. Meanwhile it takes only what cannot disturb the next of them."""

    batch: Batch | None = None

    def guard(self, statement: object) -> None:
        """Raise unless the write that has the connection may say this."""
        if self.batch is None:
            return
        if isinstance(statement, Composable):
            statement = statement.as_string(self)
        if self.batch.given_up:
            raise NotShared("it took too long")
        if not isinstance(statement, str) or not may_share(statement):
            raise NotShared("a statement that needs a transaction of its own")

    def commit(self) -> None:
        self.guard("COMMIT")
        super().commit()

    def rollback(self) -> None:
        self.guard("ROLLBACK")
        super().rollback()


class SharedCursor(psycopg.Cursor[TupleRow]):
    """Whoever speaks to the server, SQLAlchemy or the driver itself, speaks through a cursor."""

    def execute(self, query: Any, *args: Any, **options: Any) -> SharedCursor:
        cast(SharedConnection, self.connection).guard(query)
        super().execute(query, *args, **options)
        return self

    def executemany(self, query: Any, *args: Any, **options: Any) -> None:
        cast(SharedConnection, self.connection).guard(query)
        super().executemany(query, *args, **options)

    def stream(self, query: Any, *args: Any, **options: Any) -> NoReturn:
        raise NotShared("a stream")

    def copy(self, *args: Any, **options: Any) -> NoReturn:
        raise NotShared("a COPY")


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
        self, dsn: str, worker_no: int, *, thread: Callable[[str, Callable[[], None]], threading.Thread]
    ) -> None:
        self._dsn = dsn
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
        self._make_thread("pipeline-writer", _Writer(self, self._dsn, self._worker_no).run).start()

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

    def __init__(self, writes: SharedWrites, dsn: str, worker_no: int) -> None:
        self._writes = writes
        self._worker_no = worker_no
        self._engine = _engine(dsn)
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
        wire = _wire(connection)
        with connection.begin():
            answers = complete_all(connection, self._worker_no, [write.completion for write in batch.writes])
            # What lost its job, or meets a locked row, is told so in a transaction of its own.
            winners = [(write, answer) for write, answer in zip(batch.writes, answers, strict=True) if answer.moved]
            wire.batch = batch
            try:
                for write, _ in winners:
                    batch.until, batch.current = monotonic() + SHORT, write
                    write.context.run(write.write, connection)
                    self._check(write, connection)
                batch.current = None
            finally:
                wire.batch = None
            self._compare(wire)
            if failpoints.armed:
                failpoints.reach("write.executed")
        if failpoints.armed:
            failpoints.reach("write.committed")
        for write, answer in winners:
            write.answer = answer.completed

    def _check(self, write: SharedWrite, connection: Connection) -> None:
        wire = _wire(connection) if not connection.closed else None
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
        if batch.current is not None and not batch.given_up:
            self._writes.leave_alone([batch.current.queue], error)

    def _connect(self) -> Connection:
        self._connection = self._engine.connect()
        self._state = _wire(self._connection).execute(STATE).fetchone() or ()
        self._connection.rollback()
        return self._connection

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not connection.closed:
            connection.invalidate()
            connection.close()


def _wire(connection: Connection) -> SharedConnection:
    return cast(SharedConnection, connection.connection.dbapi_connection)


def _engine(dsn: str) -> Engine:
    options: Mapping[str, Any] = {**KEEPALIVE, "application_name": "pipeline writer", "options": LIMITS}
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: SharedConnection.connect(dsn, cursor_factory=SharedCursor, **options),
        poolclass=NullPool,
        hide_parameters=True,
        json_deserializer=decode,
    )
