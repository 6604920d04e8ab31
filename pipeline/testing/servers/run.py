"""Workflows on real servers: a worker process, a database and a vhost of the test's own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg

from pipeline.declare.states import Status
from pipeline.observe.failpoints import step_place
from pipeline.store import database
from pipeline.store.testing import clock, jobs
from pipeline.testing.run import AttemptRecord, JobRecord, Named, Run, Seen, check_phase
from pipeline.testing.servers.workers import Workers, wait

if TYPE_CHECKING:
    from sqlalchemy import Engine

THREADS = 4


class RealRun(Run):
    """``drain`` starts a worker process, and another one if that dies; between two drains it stays.

    ``patience``: how many seconds a drain may take.
    """

    def __init__(self, environment: Mapping[str, str], url: str, folder: Path, patience: float = 60.0) -> None:
        self.patience = patience
        self._environment = environment
        self._workers = Workers(folder, Path.cwd())
        self._kills: Counter[str] = Counter()
        self._suffered: Counter[str] = Counter()
        self._db: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)

    @property
    def engine(self) -> Engine:
        return database.engine()

    def jobs(self, workflow: Named | str | None = None) -> Sequence[JobRecord]:
        name = workflow if workflow is None or isinstance(workflow, str) else workflow.name
        return [self.job(job) for job in jobs.all_jobs(self._db, name)]

    def look(self, job_id: UUID) -> Seen:
        row = jobs.job(self._db, job_id)
        if row is None:
            raise LookupError(f"there is no job {job_id} in this run")
        workflow, phase, status, body, results, crashes, error, due, reason, tags = row
        attempts = [AttemptRecord(*one) for one in jobs.attempts(self._db, job_id)]
        return Seen(workflow, phase, Status(status), body, results, attempts, crashes, error, due, reason, tags)

    def drain(self) -> None:
        """AssertionError if that takes longer than ``patience``, with the jobs that are left and the workers' logs."""
        if self._kills:
            # It dies where it is told to when it boots.
            self._workers.kill()

        def drained() -> bool:
            if not self._workers.lives():
                self._start_worker()
            return jobs.left(self._db) == 0

        if not wait(drained, self.patience):
            left = "\n".join(jobs.open_jobs(self._db))
            raise AssertionError(f"not drained after {self.patience:g} s:\n{left}\n{self.logs()[-6000:]}")
        self._forget_kills()

    def kill_at(self, phase: str, *, step: str | None = None, times: int = 1) -> None:
        """A step of an isolated phase, or of a job that has crashed before, is in a child process, which lives on."""
        queue = check_phase(phase)
        self._kills[f"phase.ended@{queue}" if step is None else f"step.ended@{step_place(queue, step)}"] += times

    def kill_worker(self) -> None:
        """Kill the worker process now, wherever it is. The next drain starts another."""
        self._workers.kill()

    def logs(self) -> str:
        """What all workers of the run have logged."""
        return self._workers.logs()

    def close(self) -> None:
        """No process is left behind."""
        self._workers.close()
        self._db.close()

    def _advance(self, by: timedelta | None) -> None:
        seconds = clock.next_due(self._db) if by is None else by.total_seconds()
        if seconds is not None:
            clock.let_pass(self._db, seconds)

    def _start_worker(self) -> None:
        self._forget_kills()
        told = " ".join(f"{place}={','.join(times * ['kill'])}" for place, times in self._kills.items())
        environment = {**os.environ, **self._environment, "PIPELINE_FAILPOINTS": told}
        self._workers.start(environment, threads=THREADS, processes=1)
        self._workers.wait_until_ready()

    def _forget_kills(self) -> None:
        """Those that workers have suffered since."""
        logs = self.logs()
        for place in list(self._kills):
            suffered = logs.count(f"failpoint {place}: kill")
            self._kills[place] -= suffered - self._suffered[place]
            self._suffered[place] = suffered
        self._kills = +self._kills
