"""Workflows in memory: no servers, time that a test moves on, and the engine's own rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pipeline.declare.job import Done, as_done, decode, perform
from pipeline.declare.states import FINAL
from pipeline.declare.waits.branches import next_of
from pipeline.declare.waits.next import decode_next
from pipeline.journey import ends
from pipeline.journey.attempt import THREAD, Attempt, encode_result, job_of
from pipeline.journey.settle import SHARED, decide, out_of_time
from pipeline.journey.steps import keep_alone
from pipeline.store.gateway import callers
from pipeline.store.gateway.settlement import Crash, Snooze
from pipeline.testing.memory.attempt import Killed, Kills, Loop, Outside, begin
from pipeline.testing.memory.clock import Clock
from pipeline.testing.memory.ends import MemoryEnds
from pipeline.testing.memory.rows import Row
from pipeline.testing.memory.table import Table
from pipeline.testing.run import JobRecord, Named, Run, Seen, check_phase
from pipeline.worker.loop_writes import LoopConnection

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

# More attempts than this in one drain do not end: a job waits for nothing, again and again.
MOST = 10_000


@dataclass(frozen=True)
class CollectedWrite:
    """What ``Done(write=…)`` would have written, in a run without a database.

    >>> books = Workflow("books")
    >>> @books.phase
    ... def enter(job: Job) -> Done:
    ...     return Done(write=[text("INSERT INTO books VALUES (17)")])
    >>> job = run.submit(books)
    >>> run.drain()
    >>> [(write.job_id == job.id, write.phase) for write in run.writes]
    [(True, 'enter')]
    """

    job_id: UUID
    phase: str
    done: Done

    def execute(self, connection: Connection) -> None:
        """Write it now."""
        self.done.execute(connection)


class MemoryRun(Run):
    """Jobs in memory. ``drain`` runs one attempt after the other, in the thread that calls it.

    >>> job = run.submit(orders, {"order": 17})
    >>> run.kill_at("charge")
    >>> run.drain()
    >>> job.outcomes
    [('check-stock', 'succeeded'), ('charge', 'crashed'), ('charge', 'succeeded')]

    ``writes``: what phases would have written, oldest first, where the run has no database.
    """

    def __init__(self, engine: Engine | None, folder: Path) -> None:
        self.clock = Clock()
        self.writes: list[CollectedWrite] = []
        self._engine = engine
        self._folder = folder
        self._table = Table(self.clock)
        self._paused: dict[str, datetime] = {}
        self._kills = Kills()
        self._outside = Outside(engine, folder, self._kills, self._table.batches)
        self._loop = Loop()
        self._draining = False

    @property
    def engine(self) -> Engine | None:
        return self._engine

    def jobs(self, workflow: Named | str | None = None) -> Sequence[JobRecord]:
        name = workflow if workflow is None or isinstance(workflow, str) else workflow.name
        rows = [row for row in self._table.rows.values() if row.committed]
        return [self.job(row.id) for row in rows if name in (None, row.workflow.name)]

    def look(self, job_id: UUID) -> Seen:
        row = self._table.find(job_id)
        if row is None:
            raise LookupError(f"there is no job {job_id} in this run")
        return Seen(
            workflow=row.workflow.name,
            phase=row.spec.name,
            status=row.status,
            body=decode(row.body),
            results=decode(row.result),
            attempts=list(row.history),
            crashes=row.crashes,
            error=row.error,
            due=row.due,
            wait_reason=row.wait_reason,
            tags=list(row.tags),
        )

    def drain(self) -> None:
        if self._draining:
            raise RuntimeError("a phase cannot drain the run that it is part of")
        self._draining = True
        try:
            for _ in range(MOST):
                row = self._table.next_due(self._paused, self.clock.now())
                if row is None:
                    return
                self._attempt(row)
        finally:
            self._draining = False
        raise AssertionError(f"{MOST} attempts and no end: {self.jobs()[-3:]}")

    def kill_at(self, phase: str, *, step: str | None = None, times: int = 1) -> None:
        self._kills.tell(check_phase(phase), step, times)

    def close(self) -> None:
        """Nothing of this run goes on."""
        self._loop.close()

    def _advance(self, by: timedelta | None) -> None:
        if by is not None:
            self.clock.advance(by)
            return
        now = self.clock.now()
        dues = [row.due for row in self._table.rows.values() if row.status not in FINAL]
        if waiting := [due for due in dues if due is not None and due > now]:
            self.clock.advance_to(min(waiting))

    # ---- one attempt

    def _attempt(self, row: Row) -> None:
        attempt = begin(row, self._outside)
        try:
            self._run(row, attempt)
        except Killed:
            error = "the process died while it ran this job"
            row.settle(Crash(error), self.clock.now(), self._table.order())
        except (Exception, SystemExit) as error:
            self._settle_error(row, attempt, error)
        finally:
            if attempt.job is not None:
                attempt.job.clean_up()

    def _run(self, row: Row, attempt: Attempt) -> None:
        attempt.job = job = job_of(attempt, row.phase, lambda: self._folder, keep_alone)
        began = self.clock.now()
        returned = perform(row.phase, job)
        if inspect.iscoroutine(returned):
            returned = self._loop.wait(attempt.place.returned(job, returned))
        done = as_done(returned)
        self._kills.reach(row.spec.queue)
        if (self.clock.now() - began).total_seconds() > row.spec.time_limit:
            raise TimeoutError(out_of_time(row.spec))
        result = encode_result(row.phase, done)
        following = decode_next(next_of(row.spec, done))
        if done.write is not None and row.held(attempt.fence):
            self._write(row, attempt, done)
        if row.held(attempt.fence):
            if done.children is not None:
                self._table.spawn(row, done.children)
            row.complete(result, following, self.clock.now(), self._table.order())
            self._table.begin_waiting(row)

    def _write(self, row: Row, attempt: Attempt, done: Done) -> None:
        """All of it, or nothing: if it fails, the phase does."""
        write = self._writer(row, attempt, done)
        if self._engine is None:
            self.writes.append(CollectedWrite(row.id, row.spec.name, done))
            return
        with self._engine.begin() as connection:
            write(connection)

    def _writer(self, row: Row, attempt: Attempt, done: Done) -> Callable[[Connection], object]:
        if attempt.isolated or row.spec.kind != "thread":
            if inspect.iscoroutinefunction(done.write):
                return partial(self._write_async, done.write)
            return done.execute
        return THREAD.writer(attempt, done)

    def _write_async(self, write: Callable[[Any], Any], connection: Connection) -> None:
        async def ask(work: Callable[[Connection], Any]) -> Any:
            return work(connection)

        self._loop.wait(write(LoopConnection(ask)))

    def _settle_error(self, row: Row, attempt: Attempt, error: BaseException) -> None:
        now = self.clock.now()
        transition = decide(error, row.spec, row.attempts, now=now, chance=0.0)
        if transition is None or not row.held(attempt.fence):
            return
        if row.spec.shared_limit and isinstance(transition, Snooze) and transition.reason in SHARED:
            self._paused[row.spec.queue] = now + timedelta(seconds=transition.delay)
        row.settle(transition, now, self._table.order())


@contextmanager
def in_memory(engine: Engine | None = None) -> Iterator[MemoryRun]:
    """Run workflows without servers, for as long as the ``with`` block lasts.

    >>> with in_memory() as run:
    ...     job = run.submit(orders, {"order": 17}, delay=timedelta(hours=1))
    ...     run.drain()
    ...     assert job.status == "pending"
    ...     run.advance(hours=1)
    ...     run.drain()
    ...     assert job.results["check-stock"] == {"left": 3}

    ``engine``: the application's database, of any kind that SQLAlchemy knows (SQLite's will do). ``Done(write=…)``
    commits to it together with the job's step, and ``job.read`` and ``job.keep`` use it. Without one, writes are
    collected in ``run.writes``.

    Jobs and time are the run's own; the phases, the rules by which they are tried again and the states of a job are
    the engine's. There is no jitter, and phases run one after the other. Rate limits, pools, throttles and queue
    limits hold nobody up. A time limit ends nothing that is stuck; a phase that took longer than it fails afterwards.
    """
    if callers.stand_in is not None:
        raise RuntimeError("a run in memory is open already: close it first")
    with TemporaryDirectory(prefix="pipeline-memory-") as folder:
        run = MemoryRun(engine, Path(folder))
        callers.stand_in = run._table.answer
        ends.stand_in = MemoryEnds(run._table.find, run.drain)
        try:
            yield run
        finally:
            callers.stand_in = ends.stand_in = None
            run.close()
