"""An attempt's place on the event loop: how a coroutine waits for signals, calls, and what its job asks for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from pipeline.declare.job import Done, Job, Write
from pipeline.declare.services import Guard, LaterRows, Services
from pipeline.journey.attempt import AttemptServices, Place
from pipeline.journey.checkpoint import Interrupted
from pipeline.worker.loop_writes import as_write

if TYPE_CHECKING:
    from pipeline.broker.inbound import Delivery
    from pipeline.declare.waits.limits import Breaker
    from pipeline.journey.attempt import Attempt
    from pipeline.store.group_commit import Signal
    from pipeline.worker.event_loop import Runner

Answer = TypeVar("Answer")


class LoopSignal:
    """For a coroutine that waits until then."""

    __slots__ = ("_runner", "future")

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.future: asyncio.Future[None] = runner.loop.create_future()

    def set(self) -> None:
        self._runner.post(self._set)

    def _set(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class LoopServices(Services):
    """What a job of an ``async def`` phase reaches: each call is made when it is awaited."""

    def __init__(self, services: AttemptServices, call: Callable[..., Awaitable[Any]]) -> None:
        self._services = services
        self._call = call
        self.asynchronous = services.asynchronous

    @property
    def temp_root(self) -> Path:
        return self._services.temp_root

    def read(self, statement: str, parameters: Mapping[str, Any]) -> LaterRows:
        ask: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
        ask = partial(self._call, self._services.read, statement, parameters)
        return LaterRows(self.calls.later("read", ask))

    def keep(self, statement: str, parameters: Mapping[str, Any]) -> Awaitable[bool]:
        return self.calls.later("keep", partial(self._call, self._services.keep, statement, parameters))

    def ends(self, batch: UUID, after: UUID | None, skip: int, most: int) -> LaterRows:
        ask: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
        ask = partial(self._call, self._services.ends, batch, after, skip, most)
        return LaterRows(self.calls.later("ends", ask))

    def event_link(self, job: UUID, event: str, expires: timedelta, body: object, fence: int) -> str:
        return self._services.event_link(job, event, expires, body, fence)

    async def kept_steps(self) -> Mapping[str, str]:
        return await self._services.kept_steps()

    async def keep_step(self, name: str, value: str) -> bool:
        return await self._services.keep_step(name, value)

    def report(self, done: int, total: int) -> Awaitable[bool]:
        return self.calls.later("progress", partial(self._call, self._services.report, done, total))

    def guard(self, breaker: Breaker) -> Guard:
        return self._services.guard(breaker)

    def take_permit(self, rate_limit: str, calls: int) -> Awaitable[None]:
        return self.calls.later("limit", partial(self._take_permit, rate_limit, calls))

    async def _take_permit(self, rate_limit: str, calls: int) -> None:
        # Not in the thread that asks: a permit is up to a quarter of a second away.
        await asyncio.sleep(await self._call(self._services.permit_in, rate_limit, calls))


class LoopPlace(Place):
    """A place on the event loop: what waits, waits without it."""

    isolates = False

    def __init__(self, runner: Runner, delivery: Delivery) -> None:
        self._runner = runner
        self._waits = False
        self.delivery = delivery

    @property
    def waits_for_claim(self) -> bool:
        """Whether the answer to the message's claim is still to come."""
        return self._waits and self.delivery.attempt is None

    def signal(self) -> Signal:
        return LoopSignal(self._runner)

    async def wait(self, signal: Signal) -> None:
        assert isinstance(signal, LoopSignal)
        self._waits = True
        await signal.future
        self._waits = False

    async def call(self, work: Callable[..., Answer], *args: Any) -> Answer:
        # As asyncio.to_thread does: what the phase set for logs and traces holds there, too.
        return await self._runner.loop.run_in_executor(None, partial(copy_context().run, work, *args))

    async def look(self, look: Future[Answer]) -> Answer:
        return await asyncio.wrap_future(look)

    async def pause(self, attempt: Attempt, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def stopper(self) -> Callable[[], None]:
        task = asyncio.current_task()
        assert task is not None
        self._working = task
        return partial(self._runner.post, self._cancel)

    def stopped(self, error: BaseException | None) -> None:
        task, self._working = self._working, None
        if task is not None:
            task.uncancel()
        if isinstance(error, asyncio.CancelledError):
            raise Interrupted from None

    def runner(self) -> object:
        return self._runner

    def services(self, services: AttemptServices) -> Services:
        return LoopServices(services, self.call)

    async def returned(self, job: Job, value: Any) -> object:
        answer = await value
        job.services.calls.check()
        return answer

    def writer(self, attempt: Attempt, done: Done) -> Write:
        if inspect.iscoroutinefunction(done.write):
            return as_write(done, attempt, self._runner.loop)
        return done.execute

    _working: asyncio.Task[Any] | None = None

    def _cancel(self) -> None:
        """In the loop's thread, so that it is true while it is read: the work ends in that thread, too."""
        if self._working is not None:
            self._working.cancel()
