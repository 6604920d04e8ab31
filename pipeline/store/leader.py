"""Leader locks: of all processes one sends and one does maintenance, and the next takes over the moment it dies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from select import POLLIN, poll

import psycopg
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from pipeline.observe import logs
from pipeline.store.engine import connect
from pipeline.store.waiter import Waiter

log = logs.get("pipeline.leader")

# How long to wait before the leader is looked at.
PATIENCE = "60s"
LOCK = SQL("LOCK TABLE {} IN SHARE UPDATE EXCLUSIVE MODE")
# A leader that is frozen keeps its lock. Its heartbeat is stale then: end its session, the lock goes with it.
# Sessions are the server's: another database's leader may have the same number.
DEPOSE = """SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN pipeline.workers w ON a.application_name = %s || w.no
    WHERE a.datname = current_database() AND l.locktype = 'relation' AND l.relation = %s::regclass
      AND l.granted AND w.heartbeat_at < now() - interval '60 seconds'"""


class LeaderLock:
    """A connection that waits for the lock and then keeps it, in a transaction that does nothing else.

    It has no snapshot, while it waits and while it leads, so that it does not hold back vacuum. Should the lock be
    lost, two leaders may work for a moment, which does no harm.
    """

    def __init__(self, connection: psycopg.Connection[TupleRow], name: str, view: str) -> None:
        self._connection = connection
        self._name = name
        self._view = view
        self._stopping = False

    def take(self) -> bool:
        """Wait for the lock itself, without polling. False after a while, or when ``stop`` is called.

        The first look makes the session know the view: finding it in the catalogue takes a snapshot, too.
        """
        lock = LOCK.format(Identifier("pipeline", self._view))
        if self._try(lock + SQL(" NOWAIT")) or (not self._stopping and self._try(lock)):
            return True
        if not self._stopping:
            self._connection.execute(DEPOSE, (f"pipeline {self._name} ", f"pipeline.{self._view}"))
        return False

    def stop(self) -> None:
        """End the wait, from another thread."""
        self._stopping = True
        try:
            self._connection.cancel_safe(timeout=2)
        except psycopg.Error:
            pass

    def check(self) -> None:
        """Raise if the lock is lost: the server hung up."""
        wire = self._connection.pgconn
        while wire.status == psycopg.pq.ConnStatus.OK and _readable(wire.socket):
            wire.consume_input()
        if wire.status != psycopg.pq.ConnStatus.OK:
            raise psycopg.OperationalError("the leader's lock is lost")

    def _try(self, lock: SQL | psycopg.sql.Composed) -> bool:
        self._connection.execute("BEGIN")
        try:
            self._connection.execute(lock)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
            self._connection.execute("ROLLBACK")
            return False
        return True


Lead = Callable[[LeaderLock, psycopg.Connection[TupleRow]], None]


class LeaderThread:
    """Waits for the lock and then calls ``lead``, which returns to let another lead, or when ``stopping``.

    Only while ``ready`` says so does this process take part; it may wait a little before it says no. After a failure
    it takes part again: should the thread die, this process would never lead, and nobody would notice.
    """

    def __init__(
        self, dsn: str, name: str, view: str, worker_no: int, *, lead: Lead, ready: Callable[[], bool] = lambda: True
    ) -> None:
        self._dsn = dsn
        self._name = name
        self._view = view
        self._worker_no = worker_no
        self._lead = lead
        self._ready = ready
        self._lock: LeaderLock | None = None
        self.waiter = Waiter()
        self.stopping = False
        self.leading = False
        self.thread = threading.Thread(target=self._run, name=f"pipeline-{name}", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.stopping = True
        if self._lock is not None:
            self._lock.stop()
        self.waiter.wake()
        self.thread.join(5)

    def _run(self) -> None:
        while not self.stopping:
            try:
                if self._ready():
                    self._take_part()
            except psycopg.Error as error:
                log.warning("lost PostgreSQL; trying again", part=self._name, error=str(error).strip())
                self.waiter.wait(None, 0.3)
            except Exception:
                log.exception("failed; it starts again", part=self._name)
                self.waiter.wait(None, 1.0)

    def _take_part(self) -> None:
        with waiting_to_lead(self._dsn, self._name, self._view, self._worker_no) as lock:
            self._lock = lock
            while not self.stopping and not lock.take():
                pass
            try:
                with connect(self._dsn, self._name) as connection:
                    self.leading = True
                    log.info("this process leads", part=self._name)
                    self._lead(lock, connection)
            finally:
                self.leading = False


@contextmanager
def waiting_to_lead(dsn: str, name: str, view: str, worker_no: int) -> Iterator[LeaderLock]:
    """A lock to take; given up at the end of the block."""
    with connect(dsn, f"{name} {worker_no}") as connection:
        connection.execute(f"SET lock_timeout = '{PATIENCE}'")
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        yield LeaderLock(connection, name, view)


def told(connection: psycopg.Connection[TupleRow]) -> bool:
    """Whether anybody has sent word since the last time.

    Word that came right behind the last answer is in libpq's buffer: psycopg would wait for the socket first.
    """
    heard = bool(list(connection.notifies(timeout=0)))
    while connection.pgconn.notifies() is not None:
        heard = True
    return heard


def _readable(socket: int) -> bool:
    eye = poll()
    eye.register(socket, POLLIN)
    return bool(eye.poll(0))
