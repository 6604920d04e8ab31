"""One attempt in memory: claimed, run and settled by the engine's own rules, in the thread that drains."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from pipeline.declare.errors import Misuse
from pipeline.declare.job import Job
from pipeline.declare.services import Guard, Services
from pipeline.journey.attempt import Attempt, AttemptServices, Place
from pipeline.store.gateway import session
from pipeline.testing.memory.batches import Batches
from pipeline.testing.memory.rows import Row
from pipeline.worker.loop_place import LoopServices

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pipeline.declare.waits.limits import Breaker

Answer = TypeVar("Answer")

NO_DATABASE = "this run has no database: pass one, as in_memory(engine=create_engine(…))"


class Killed(BaseException):
    """The process died here: nobody settles the attempt."""


class Kills:
    """Where attempts die, told beforehand: at a phase, or at a step of it."""

    def __init__(self) -> None:
        self._told: list[tuple[str, str | None]] = []

    def tell(self, queue: str, step: str | None, times: int) -> None:
        self._told += times * [(queue, step)]

    def reach(self, queue: str, step: str | None = None) -> None:
        """Die here, if that was told."""
        if (queue, step) in self._told:
            self._told.remove((queue, step))
            raise Killed


@dataclass(frozen=True)
class Outside:
    """What attempts reach beside their own job: the application's database, if the run has one."""

    engine: Engine | None
    folder: Path
    kills: Kills
    batches: Batches


class MemoryServices(AttemptServices):
    """What a job reaches while it runs in memory."""

    def __init__(self, row: Row, fence: int, outside: Outside) -> None:
        self._row = row
        self._kills = outside.kills
        self._batches = outside.batches
        self.asynchronous = row.spec.asynchronous
        self._fence = fence
        self._engine = outside.engine
        self.temp_root = outside.folder

    def read(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        with self._database().connect() as connection:
            return session.read(connection, statement, parameters)

    def keep(self, statement: str, parameters: Mapping[str, Any]) -> bool:
        if not self._row.held(self._fence):
            return False
        self._row.waits = 0
        with self._database().begin() as connection:
            session.write(connection, statement, parameters)
        return True

    def ends(self, batch: UUID, after: UUID | None, skip: int, most: int) -> Sequence[Mapping[str, Any]]:
        return self._batches.ends(batch, after, skip, most)

    async def kept_steps(self) -> Mapping[str, str]:
        return self._row.steps.setdefault(self._row.spec.name, {})

    async def keep_step(self, name: str, value: str) -> bool:
        self._kills.reach(self._row.spec.queue, name)
        if held := self._row.held(self._fence):
            self._row.waits = 0
            self._row.steps.setdefault(self._row.spec.name, {})[name] = value
        return held

    def report(self, done: int, total: int) -> bool:
        if held := self._row.held(self._fence):
            self._row.waits, self._row.progress = 0, (done, total)
        return held

    def guard(self, breaker: Breaker) -> Guard:
        return Guard()

    def permit_in(self, rate_limit: str, calls: int) -> float:
        return 0.0

    def _database(self) -> Engine:
        if self._engine is None:
            raise Misuse(NO_DATABASE)
        return self._engine


class MemoryPlace(Place):
    """In the thread that drains."""

    def __init__(self, services: MemoryServices, asynchronous: bool) -> None:
        self._services = services
        self._asynchronous = asynchronous

    def services(self, services: AttemptServices) -> Services:
        return LoopServices(self._services, _at_once) if self._asynchronous else self._services

    async def returned(self, job: Job, value: Any) -> object:
        answer = await value
        job.services.calls.check()
        return answer


async def _at_once(work: Callable[..., Answer], *args: Any) -> Answer:
    return work(*args)


class Loop:
    """One event loop for all attempts: what a phase keeps may be bound to it. An async test has its own beside it."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def wait(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        self._runner = runner = self._runner or asyncio.Runner()
        if not _in_loop():
            return runner.run(coroutine)
        found: list[Answer] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(runner.run(coroutine))
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return found[0]

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def begin(row: Row, outside: Outside) -> Attempt:
    """The engine's own attempt, without a message."""
    fence = row.claim()
    services = MemoryServices(row, fence, outside)
    return Attempt(
        spec=row.spec,
        job_id=row.id,
        fence=fence,
        attempts=row.attempts,
        max_attempts=row.spec.max_attempts,
        crashes=row.crashes,
        isolated=row.isolated,
        priority=row.priority,
        body=row.body,
        results=row.result,
        trace_id=row.trace_id,
        span_id=row.span_id,
        delivery=cast(Any, None),
        place=MemoryPlace(services, row.spec.kind == "async" and not row.isolated),
    )
