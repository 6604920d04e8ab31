"""This worker's sign of life: an advisory lock that dies with the process, and the heartbeat of its jobs."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep
from uuid import UUID

import orjson
import psycopg
from psycopg.rows import TupleRow

from db.engine import connect
from pipeline.flow.claim import Claim
from pipeline.flow.vital import vital_thread
from pipeline.flow.waiter import Waiter
from pipeline.observe import logs
from pipeline.observe.counters import count, snapshot

log = logs.get("pipeline.presence")

LIVENESS = 7300
REGISTER = "INSERT INTO workers (id, host, pid, threads, queues) VALUES (%s, %s, %s, %s, %s) RETURNING no"
BEAT = "SELECT job_id, fence, status FROM pipeline_heartbeat(%s, %s::uuid[], %s::bigint[], %s, %s, %s, %s)"


def new_worker_id(name: str | None) -> str:
    """Unique for every start: a name or the host, the pid, the boot time of the process, and chance."""
    started = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19]
    return f"{name or socket.gethostname()}-{os.getpid()}-{started}-{secrets.token_hex(3)}"


class Presence:
    """Holds the lock, beats for all running jobs in one statement, and tells attempts that they must stop."""

    def __init__(self, dsn: str, worker_id: str, *, threads: int, queues: list[str], beat: float,
                 unconfirmed: Callable[[], datetime | None], deaf: Callable[[], list[str]],
                 unstarted: Callable[[], dict[str, int]] = dict) -> None:  # fmt: skip
        self._dsn = dsn
        self.worker_id = worker_id
        self.worker_no = 0
        self._threads = threads
        self._queues = queues
        self._beat = beat
        self._unconfirmed = unconfirmed
        self._deaf = deaf
        self._unstarted = unstarted
        self._claims: dict[UUID, Claim] = {}
        self._lock = threading.Lock()
        self._waiter = Waiter()
        self._stopping = False
        self._clean = False
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._thread = vital_thread("pipeline-presence", self._run)

    def start(self) -> None:
        """Register the worker and take its lock; fails when PostgreSQL is away."""
        self._connection = connect(self._dsn, "presence")
        values = (self.worker_id, socket.gethostname(), os.getpid(), self._threads, self._queues)
        row = self._connection.execute(REGISTER, values).fetchone()
        assert row is not None
        self.worker_no = row[0]
        self._take_lock()
        self._thread.start()

    def stop(self, *, clean: bool) -> None:
        """Leave in order. ``clean``: nothing of this worker needs to be recovered; otherwise it counts as dead."""
        self._clean = clean
        self._stopping = True
        self._waiter.wake()
        self._thread.join(5)

    def hold(self, claim: Claim) -> None:
        """Beat for this claim from now on."""
        with self._lock:
            self._claims[claim.job_id] = claim
        if claim.spec.time_limit < self._beat:
            self._waiter.wake()

    def release(self, claim: Claim) -> None:
        with self._lock:
            if self._claims.get(claim.job_id) is claim:
                del self._claims[claim.job_id]

    def held(self) -> list[Claim]:
        with self._lock:
            return list(self._claims.values())

    def _run(self) -> None:
        next_beat = monotonic() + self._beat
        while not self._stopping:
            now = monotonic()
            claims = self.held()
            for claim in claims:
                if claim.deadline <= now:
                    claim.interrupt("time_limit")
            due = min([next_beat, *(c.deadline for c in claims if c.deadline > now)])
            hung_up = self._waiter.wait(self._connection, due - now)
            try:
                if hung_up or self._connection is None:
                    self._check_connection()
                if monotonic() >= next_beat:
                    self._heartbeat()
                    next_beat = monotonic() + self._beat
            except psycopg.Error as error:
                log.warning("PostgreSQL does not answer the heartbeat; trying again", error=str(error).strip())
                # The lock lives as long as its connection: one that still works is kept, or we would look dead.
                if self._hung_up():
                    self._connection = None
                sleep(0.2)
        self._say_goodbye()

    def _check_connection(self) -> None:
        if self._connection is not None:
            self._connection.pgconn.consume_input()
            if self._hung_up():
                raise psycopg.OperationalError("the server closed the connection")
            return
        self._connection = connect(self._dsn, "presence")
        self._take_lock()
        self._heartbeat()
        count("presence.reconnects")

    def _hung_up(self) -> bool:
        return self._connection is None or self._connection.pgconn.status != psycopg.pq.ConnStatus.OK

    def _take_lock(self) -> None:
        assert self._connection is not None
        self._connection.execute("SELECT pg_advisory_lock(%s, %s)", (LIVENESS, self.worker_no))

    def _heartbeat(self) -> None:
        assert self._connection is not None
        claims = self.held()
        rows = self._connection.execute(BEAT, (
            self.worker_id, [str(claim.job_id) for claim in claims], [claim.fence for claim in claims],
            self._unconfirmed(), orjson.dumps(snapshot()).decode(), self._deaf(),
            orjson.dumps(self._unstarted()).decode(),
        )).fetchall()  # fmt: skip
        held = {(claim.job_id, claim.fence): claim for claim in claims}
        for job_id, fence, status in rows:
            claim = held[(job_id, fence)]
            if self._claims.get(job_id) is not claim:
                continue  # it ended while the statement was under way
            log.warning("attempt told to stop", job=str(job_id), fence=fence, status=status)
            claim.interrupt("cancelled" if status in ("cancelled", "deleted") else "lost")

    def _say_goodbye(self) -> None:
        try:
            if self._connection is not None:
                self._heartbeat()
                if self._clean:
                    self._connection.execute("UPDATE workers SET stopped_at = now() WHERE no = %s", (self.worker_no,))
                self._connection.close()
        except psycopg.Error:
            log.warning("could not sign off; the health check will notice")
