"""Where a test happens: its database, its vhost, its worker processes, and ways to wait for what it expects."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from pipeline.dev.services import Servers, environment
from pipeline.testing.servers.workers import Workers
from tests.forked import fork_worker
from tests.forking import ROOT as ROOT
from tests.processes import kill
from tests.processes import lives as lives

# For workers of tests that are about isolated phases.
ISOLATED = "tests.workflows,tests.isolated_workflows"
# Most tests are about something else and need not wait. What is about timings runs with the defaults: see ``users``.
SHORT = {"PIPELINE_PATIENCE_SECONDS": "1", "PIPELINE_HEALTH_SECONDS": "3", "PIPELINE_HEARTBEAT_SECONDS": "1"}
OPEN = """SELECT j.id, j.phase, j.status, j.send, j.fence, j.attempts, j.delivery, j.locked_by, j.locked_at, j.heartbeat_at,
        o.phase_id, o.due_at, o.reason, o.sent_at, now()
    FROM pipeline.jobs j LEFT JOIN pipeline.outbox o ON o.job_id = j.id WHERE j.completed_at IS NULL ORDER BY j.id LIMIT 20"""
OPTIONAL = frozenset({"RABBITMQ_MANAGEMENT_URL", *SHORT})


class Place:
    """Everything of one test. ``close`` leaves no process behind."""

    def __init__(self, servers: Servers, name: str, folder: Path, vhost: str | None = None) -> None:
        self.servers = servers
        # Its database's, and unless another is given its vhost's.
        self.name = name
        self.vhost = vhost or name
        self.folder = folder
        self.record_path = folder / "executions"
        # What its workers load: each process imports it anew, and declares its queues.
        self.workflows = "tests.workflows"
        # Settings of its workers alone.
        self.of_workers: dict[str, str] = {}
        # Settings that the workers of this test do without.
        self.unset: frozenset[str] = frozenset()
        self._workers = Workers(folder, ROOT)
        self.database_url = servers.postgres.url(name)
        self._db: psycopg.Connection[Any] | None = None

    @property
    def db(self) -> psycopg.Connection[Any]:
        """A connection of the test's own; it comes back after a restart of PostgreSQL."""
        if self._db is None or self._db.closed or self._db.broken:
            self._db = psycopg.connect(self.database_url, autocommit=True, row_factory=dict_row)
        return self._db

    def load(self, *modules: str) -> None:
        """Its workers load these, too."""
        self.workflows = ",".join([self.workflows, *modules])

    def environment(self) -> dict[str, str]:
        chosen = {
            "DATABASE_URL": self.database_url,
            "RABBITMQ_URL": self.servers.rabbitmq.url(self.vhost),
            "RABBITMQ_MANAGEMENT_URL": environment(self.servers)["RABBITMQ_MANAGEMENT_URL"],
            "PIPELINE_WORKFLOWS": self.workflows,
            "PIPELINE_TEMP_FOLDER": str(self.folder / "temp"),
            "TEST_RECORD": str(self.record_path),
            "PYTHONPATH": str(ROOT),
            **SHORT,
        }
        return {name: value for name, value in chosen.items() if name not in self.unset}

    # ---- workers

    def worker(
        self,
        *,
        threads: int = 4,
        processes: int = 1,
        wait: bool = True,
        queues: tuple[str, ...] = (),
        settings: Mapping[str, str] | None = None,
        **extra: str,
    ) -> subprocess.Popen[bytes]:
        """Start ``dramatiq pipeline.actors`` for real, and wait until its processes are ready."""
        inherited = {name: value for name, value in os.environ.items() if name not in self.unset}
        environment = {**inherited, **self.environment(), **self.of_workers, **(settings or {}), **extra}
        process = self._start(environment, threads=threads, processes=processes, queues=queues)
        if wait:
            self._workers.wait_until_ready(processes)
        return process

    def _start(self, environment: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
        """As users do, with an interpreter of its own, if this test has their settings; otherwise with less work."""
        if self.unset:
            return self._workers.start(environment, **options)
        return fork_worker(self._workers, self.folder, environment, **options)

    def pids(self) -> list[int]:
        """The living worker processes, newest last."""
        return [
            row["pid"]
            for row in self.rows("SELECT pid FROM pipeline.workers WHERE stopped_at IS NULL ORDER BY no")
            if lives(row["pid"])
        ]

    def booted(self) -> list[int]:
        """Those that have beaten since: Dramatiq's master waits half a minute for one that dies while it boots."""
        beaten = "SELECT pid FROM pipeline.workers WHERE stopped_at IS NULL AND heartbeat_at > started_at ORDER BY no"
        return [row["pid"] for row in self.rows(beaten) if lives(row["pid"])]

    def holder(self, job_id: UUID) -> int:
        """The pid of the worker that holds the job."""
        row = self.row(
            "SELECT w.pid FROM pipeline.jobs j JOIN pipeline.workers w ON w.id = j.locked_by WHERE j.id = %s", job_id
        )
        assert row is not None
        return int(row["pid"])

    def kill_holder(self, job_id: UUID) -> float:
        """Kill the worker that holds the job; the seconds until its next attempt begins elsewhere."""
        fence = self.job(job_id)["fence"]
        os.kill(self.holder(job_id), signal.SIGKILL)
        killed = time.monotonic()
        self.until(lambda: self.job(job_id)["fence"] > fence, 10, "the next attempt")
        return time.monotonic() - killed

    def logs(self) -> str:
        return self._workers.logs()

    def close(self) -> None:
        self._workers.close()
        for pid in self.pids() if self._db is not None and not self._db.closed else []:
            kill(pid)
        if self._db is not None:
            self._db.close()
        from pipeline.store import database

        database._engine.cache_clear()

    # ---- the broker

    def depth(self, queue: str) -> int:
        """Ready and unacknowledged messages."""
        return sum(self.counts(queue))

    def counts(self, queue: str) -> tuple[int, int]:
        """Messages that are ready, and those that are unacknowledged, of about a second ago."""
        return self.servers.rabbitmq.queue_counts(self.vhost).get(queue, (0, 0))

    # ---- looking

    def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        deadline = time.monotonic() + 30
        while True:
            try:
                return self.db.execute(statement, values).fetchall()
            except psycopg.OperationalError:
                # Restarting: the test's own look must not be what fails.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def row(self, statement: str, *values: Any) -> dict[str, Any] | None:
        found = self.rows(statement, *values)
        return found[0] if found else None

    def count(self, statement: str, *values: Any) -> int:
        row = self.row(statement, *values)
        return int(next(iter(row.values())) or 0) if row else 0

    def job(self, job_id: UUID) -> dict[str, Any]:
        row = self.row("SELECT * FROM pipeline.jobs WHERE id = %s", job_id)
        assert row is not None, f"no job {job_id}"
        return row

    def executions(self) -> list[tuple[str, str, int, int]]:
        """(job, phase, fence, pid) of every time a phase function was entered."""
        if not self.record_path.exists():
            return []
        lines = [line.split() for line in self.record_path.read_text().splitlines()]
        return [(job, phase, int(fence), int(pid)) for job, phase, fence, pid, _ in lines]

    def attempts(self, job_id: UUID) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM pipeline.attempts WHERE job_id = %s ORDER BY fence", job_id)

    def counter(self, name: str) -> int:
        """A counter summed over all workers, as their heartbeats brought it."""
        return self.count("SELECT sum((counters->>%s)::int) FROM pipeline.workers", name)

    # ---- waiting

    def until(self, condition: Callable[[], Any], timeout: float = 20.0, what: str = "it") -> Any:
        """Wait for an event with a deadline. Each look costs the servers something: a long wait looks less often."""
        began = time.monotonic()
        while True:
            try:
                found = condition()
            except psycopg.OperationalError:
                found = None
            if found:
                return found
            waited = time.monotonic() - began
            if waited > timeout:
                raise AssertionError(f"waited {timeout} s for {what}\n{self._situation()}")
            time.sleep(min(0.1, 0.02 + waited / 40))

    def _situation(self) -> str:
        """What there is to be seen when a wait was in vain: messages, open jobs, logs, and where each thread is."""
        logs, told = self.logs(), [f"{self.servers.rabbitmq.queue_counts(self.vhost)}"]
        try:
            told += [str(row) for row in self.db.execute(OPEN).fetchall()]
            for pid in self.pids():
                os.kill(pid, signal.SIGUSR2)  # see tests/workflows.py
                time.sleep(0.5)  # all of them write to the same log
        except (psycopg.Error, ProcessLookupError) as error:
            told.append(repr(error))
        return "\n".join([*told, logs[-6000:], self.logs()[len(logs) :][-40_000:]])

    def finished(self, *jobs: UUID, timeout: float = 30.0) -> list[dict[str, Any]]:
        """Wait until the jobs are final, and return their rows in the order asked for."""

        def all_final() -> bool:
            final = self.count(
                "SELECT count(*) FROM pipeline.jobs WHERE id = ANY (%s) AND completed_at IS NOT NULL", list(jobs)
            )
            return final == len(jobs)

        self.until(all_final, timeout, f"{len(jobs)} jobs to end")
        return [self.job(job) for job in jobs]

    def running(self, job: UUID, timeout: float = 20.0) -> None:
        self.until(lambda: self.job(job)["status"] == "running", timeout, f"job {job} to run")

    def statuses(self) -> dict[str, int]:
        return {
            f"{r['phase']}/{r['status']}": r["n"]
            for r in self.rows("SELECT phase, status, count(*) AS n FROM pipeline.jobs GROUP BY 1, 2 ORDER BY 1, 2")
        }
