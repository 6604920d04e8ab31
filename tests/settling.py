"""Settle attempts with their writes as a worker does, without a worker."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg.rows import dict_row
from sqlalchemy import Connection, text

from pipeline.declare.job import Done, Write
from pipeline.declare.phase import PhaseSpec
from pipeline.journey.attempt import Attempt
from pipeline.journey.write import settle_with_write
from pipeline.store.group_commit import Completed, Completion, Succeeded
from pipeline.store.shared_writes import SharedWrites
from tests.attempts import attempt
from tests.db import steps
from tests.place import Place

if TYPE_CHECKING:
    from pipeline.worker.process import WorkerProcess

INSERT = text("INSERT INTO ledger (job_id, phase, fence) VALUES (:job, :phase, 1)")


@dataclass
class Worker:
    """As much of a worker process as a settlement needs."""

    writes: SharedWrites
    place: Place
    no: int = 1
    ends: list[tuple[Attempt, Completed]] = field(default_factory=list)

    @property
    def advance(self) -> SimpleNamespace:
        return SimpleNamespace(committed=self.ends.extend)

    def hold(self, workflow: str) -> Attempt:
        with psycopg.connect(self.place.database_url, autocommit=True, row_factory=dict_row) as db:
            hold = steps.held(db, workflow)
        return attempt(PhaseSpec(workflow, "act"), hold.job, hold.fence)

    def settle(self, held: Attempt, write: Write) -> None:
        settle_with_write(cast("WorkerProcess", self), Completion(held, None), Done(write=write))

    def succeeded(self) -> list[Any]:
        return [one.job_id for one, completed in self.ends if completed == Succeeded()]


def good(held: Attempt) -> Write:
    def write(connection: Connection) -> None:
        connection.execute(INSERT, {"job": held.job_id, "phase": "good"})

    return write


def together(worker: Worker, threads: ThreadPoolExecutor, writes: list[tuple[Attempt, Write]]) -> list[Future[None]]:
    """Settle these in one batch: they gather while another one is being written."""
    first, begun, gathered = worker.hold("single"), threading.Event(), threading.Event()

    def hold_the_line(connection: Connection) -> None:
        good(first)(connection)
        begun.set()
        gathered.wait(10)

    ahead = threads.submit(worker.settle, first, hold_the_line)
    begun.wait(10)
    futures = [threads.submit(worker.settle, held, write) for held, write in writes]
    worker.place.until(lambda: len(worker.writes._waiting) == len(writes), 10, "them to gather")
    gathered.set()
    ahead.result(10)
    return futures
