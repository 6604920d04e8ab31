"""This worker's sign of life: an advisory lock that dies with the process, and the heartbeat of its jobs."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic
from uuid import UUID

import psycopg

from pipeline.journey.attempt import Attempt, Held
from pipeline.observe import logs
from pipeline.observe.instruments import count
from pipeline.store.engine import Wire, connect
from pipeline.store.gateway.liveness import (
    NotHeld,
    Report,
    heartbeat,
    is_draining,
    is_known,
    listen,
    note_epoch,
    refund_crashes,
    register,
    sign_off,
    take_lock,
)
from pipeline.store.waiter import Waiter
from pipeline.worker.essential import essential_thread

log = logs.get("pipeline.liveness")

# Until the lock is held again this worker looks dead: it dials again at once, and then with pauses that are hardly any.
REDIAL = (0.0, 0.02, 0.05, 0.1, 0.2)
EVERY = 50


def new_worker_id(name: str | None) -> str:
    """Unique for every start: a name or the host, the pid, the boot time of the process, and chance."""
    started = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19]
    return f"{name or socket.gethostname()}-{os.getpid()}-{started}-{secrets.token_hex(3)}"


class Forgotten(Exception):
    """This worker cannot go on. A new one, with a new number, can."""


class Liveness:
    """Holds the lock, beats for all jobs of the process in one statement, and tells attempts that they must stop.

    ``report`` is what a heartbeat says beside the jobs; ``drain`` is called when an operator wants that this worker
    takes nothing new, or jobs again.
    """

    def __init__(
        self,
        dsn: str,
        worker_id: str,
        *,
        held: Held,
        threads: int,
        queues: list[str],
        beat: float,
        report: Callable[[], Report],
        version: str = "",
        drain: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._dsn = dsn
        self.worker_id = worker_id
        self.worker_no = 0
        self._threads = threads
        self._queues = queues
        self._beat = beat
        self._report = report
        self._version = version
        self._drain = drain
        self._draining = False
        self._held = held
        self._refunds: dict[UUID, int] = {}
        self._waiter = Waiter()
        self._stopping = False
        self._clean = False
        self._connection: Wire | None = None
        self._back_since = float("-inf")
        self._next_beat = 0.0
        self._failures = 0
        self._thread = essential_thread("pipeline-liveness", self._run)

    def start(self) -> None:
        """Register the worker and take its lock; fails when PostgreSQL is away."""
        self._connection = connect(self._dsn, "liveness")
        note_epoch(self._connection)
        self.worker_no = register(
            self._connection,
            self.worker_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            threads=self._threads,
            queues=self._queues,
            version=self._version,
        )
        take_lock(self._connection, self.worker_no)
        listen(self._connection)
        self._next_beat = monotonic() + self._beat
        self._thread.start()

    def stop(self, *, clean: bool) -> None:
        """Leave in order. ``clean``: nothing of this worker needs to be recovered; otherwise it counts as dead."""
        self._clean = clean
        self._stopping = True
        self._waiter.wake()
        self._thread.join(5)

    def lost(self, attempt: Attempt) -> None:
        """The attempt lost its job. If that was because this worker looked dead, the crash is refunded."""
        if not attempt.isolated:
            self._refunds[attempt.job_id] = attempt.fence

    def back_for(self) -> float:
        """Seconds since this worker came back from an outage; infinity if there was none, 0 if there is one now."""
        return 0.0 if self._connection is None else monotonic() - self._back_since

    def _run(self) -> None:
        while not self._stopping:
            connection, pause = self._connection, self._next_beat - monotonic()
            try:
                if connection is None:
                    self._come_back()
                elif self._waiter.wait(connection, pause):
                    self._heard(connection)
                elif monotonic() >= self._next_beat:
                    self._heartbeat(connection)
            except psycopg.Error as error:
                self._failed(error)
        self._say_goodbye()

    def _heard(self, connection: Wire) -> None:
        """The server closed the connection, or an operator wants something of a worker: of this one, perhaps."""
        connection.pgconn.consume_input()
        if self._hung_up():
            raise psycopg.OperationalError("the server closed the connection")
        while (notice := connection.pgconn.notifies()) is not None:
            if notice.extra == str(self.worker_no).encode():
                self._next_beat = monotonic()

    def _obey(self, connection: Wire) -> None:
        if (wanted := is_draining(connection, self.worker_no)) == self._draining:
            return
        self._draining = wanted
        log.warning("draining: no new jobs are taken" if wanted else "jobs are taken again")
        self._drain(wanted)

    def _failed(self, error: psycopg.Error) -> None:
        if self._failures % EVERY == 0:
            log.warning("PostgreSQL does not answer the heartbeat; trying again", error=str(error).strip())
        # The lock lives as long as its connection: one that still works is kept, or we would look dead. One that takes
        # no writes may never do so again, after a failover; meanwhile nobody can take our jobs there.
        read_only = isinstance(error, psycopg.errors.ReadOnlySqlTransaction)
        if read_only and self._connection is not None:
            self._connection.close()
        if self._hung_up():
            self._connection = None
        self._waiter.wait(None, 1.0 if read_only else REDIAL[min(self._failures, len(REDIAL) - 1)])
        self._failures += 1

    def _come_back(self) -> None:
        connection = connect(self._dsn, "liveness")
        if not is_known(connection, self.worker_no, self.worker_id):
            # Nor is any of its claims, which came later. Another may have its number by now.
            raise Forgotten(f"PostgreSQL has lost its last commits, and worker {self.worker_id} with them")
        take_lock(connection, self.worker_no)
        listen(connection)
        self._back_since = monotonic()
        self._connection = connection
        count("liveness.reconnects")
        self._heartbeat(connection)

    def _hung_up(self) -> bool:
        return self._connection is None or self._connection.pgconn.status != psycopg.pq.ConnStatus.OK

    def _heartbeat(self, connection: Wire) -> None:
        self._next_beat = monotonic() + self._beat
        claims = self._held.all()
        jobs, fences = [attempt.job_id for attempt in claims], [attempt.fence for attempt in claims]
        lost = heartbeat(connection, self.worker_id, jobs, fences, self._report())
        self._failures = 0
        self._tell({(attempt.job_id, attempt.fence): attempt for attempt in claims}, lost)
        self._refund(connection)
        self._obey(connection)

    def _refund(self, connection: Wire) -> None:
        asked = dict(self._refunds)
        if not asked:
            return
        for job_id in refund_crashes(connection, self.worker_id, asked):
            if self._refunds.get(job_id) == asked[job_id]:
                del self._refunds[job_id]

    def _tell(self, held: dict[tuple[UUID, int], Attempt], lost: Iterable[NotHeld]) -> None:
        for job_id, fence, status in lost:
            attempt = held[(job_id, fence)]
            if attempt not in self._held or attempt.finished or attempt.reason is not None:
                continue  # it ended while the statement was under way, or knows already
            log.warning("attempt told to stop", job=str(job_id), fence=fence, status=status)
            attempt.interrupt("cancelled" if status in ("cancelled", "deleted") else "lost")
            if attempt.reason == "lost":
                self.lost(attempt)
            self._held.wake()

    def _say_goodbye(self) -> None:
        try:
            if self._connection is not None:
                self._heartbeat(self._connection)
                sign_off(self._connection, self.worker_no, clean=self._clean)
                self._connection.close()
        except psycopg.Error:
            log.warning("could not sign off; the health check will notice")
