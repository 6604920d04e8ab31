"""The steps of a phase: each runs once, and later attempts at the phase get what it returned."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pipeline.declare.codec import Codec, DoesNotFit, codec_of, returned
from pipeline.declare.errors import Misuse, Permanent, Snooze, StaleClaim
from pipeline.declare.phase import BODY_LIMIT
from pipeline.declare.services import DONE, Then, Waited
from pipeline.declare.waits.branches import asleep

if TYPE_CHECKING:
    from pipeline.declare.job import Job

LONGEST_NAME = 200
# Of one phase of one job.
MOST = 1000


@dataclass
class Step:
    """``value`` is the JSON of what it returned, once it has; ``kept`` once no later attempt will run it."""

    lock: asyncio.Lock | threading.Lock
    value: str | None = None
    kept: bool = False


class Steps:
    """The steps of one attempt. One algorithm for both kinds of phases: in a ``def`` phase nothing that it awaits
    ever yields."""

    def __init__(self, job: Job[Any]) -> None:
        self._job = job
        self._steps: dict[str, Step] = {}
        self._read = False
        self._lock: asyncio.Lock | threading.Lock | None = None
        self._first = threading.Lock()

    def call(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """What the step returned, in this attempt or in an earlier one; to be awaited in an ``async def`` phase."""
        _check_name(name)
        work = partial(function, *args, **named)
        waits = self._waits(name, function)
        codec = _codec(name, function, args)
        if waits:
            return self._job.services.calls.coroutine("step", lambda: self._take(name, work, codec, waits=True))
        return at_once(self._take(name, work, codec, waits=False))

    def sleep(self, name: str, duration: timedelta) -> Waited:
        """Snooze, unless an earlier attempt has slept for this name; to be awaited in an ``async def`` phase."""
        _check_name(name)
        error = asleep(name, duration)
        waits = self._job.services.asynchronous
        if waits is False or (waits is None and not _in_a_loop()):
            at_once(self._sleep(name, error, waits=False))
            return DONE
        return Then(self._job.services.calls.later("sleep", lambda: self._sleep(name, error, waits=True)))

    async def _sleep(self, name: str, error: Snooze, *, waits: bool) -> None:
        if not (await self._step(name, waits)).kept:
            raise error

    def _waits(self, name: str, function: Callable[..., Any]) -> bool:
        """Whether the step is awaited. Misuse if the function does not go with the phase."""
        waits = self._job.services.asynchronous
        if waits is None:
            return _is_async(function) or (not _blocks(function) and _in_a_loop())
        if waits and _blocks(function):
            raise Misuse(
                f"step {name!r} of an async def phase was given a def function, which would block the event loop: "
                f"write await job.step({name!r}, asyncio.to_thread, {_called(function)}, …)"
            )
        if not waits and _is_async(function):
            raise Misuse(f"step {name!r} of a def phase was given an async function: write the phase as async def")
        return waits

    async def _take(self, name: str, work: Callable[[], Any], codec: Codec, *, waits: bool) -> Any:
        self._job.check()
        if _inside.get() is self:
            raise Misuse(f"step {name!r} was called inside a step: call its function, or end the other step first")
        step = await self._step(name, waits)
        async with _held(step.lock):
            if step.value is None:
                step.value = _encode(name, codec, await self._run(name, work, waits))
            # A keep whose end nobody waited for is repeated; the function is not.
            if not step.kept:
                await self._keep(name, step.value)
                step.kept = True
        return _decode(name, codec, step.value)

    async def _step(self, name: str, waits: bool) -> Step:
        """The one of that name. What earlier attempts kept is read once, before the first."""
        with self._first:
            self._lock = self._lock or _new_lock(waits)
        async with _held(self._lock):
            if not self._read:
                kept = await self._job.services.kept_steps()
                self._steps.update((one, Step(_new_lock(waits), value, True)) for one, value in kept.items())
                self._read = True
            if name not in self._steps:
                if len(self._steps) >= MOST:
                    raise Permanent(
                        f"phase {self._job.phase} has more than {MOST} steps: do more in each, or spread the work over "
                        "several jobs"
                    )
                self._steps[name] = Step(_new_lock(waits))
            return self._steps[name]

    async def _run(self, name: str, work: Callable[[], Any], waits: bool) -> Any:
        before = _inside.set(self)
        try:
            value = work()
            if inspect.isawaitable(value) != waits:
                raise _wrong_kind(name, value)
            return await value if waits else value
        finally:
            _inside.reset(before)

    async def _keep(self, name: str, value: str) -> None:
        if not await self._job.services.keep_step(name, value):
            self._job.check()
            raise StaleClaim(
                f"job {self._job.id}: fence {self._job.fence} is no longer held; step {name!r} was not kept"
            )


# Whose step the code runs in just now.
_inside: ContextVar[Steps | None] = ContextVar("pipeline_step", default=None)


def at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What it returns. It must not wait for anything but what blocks."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("a step of a def phase waits for nothing but what blocks")


def _new_lock(waits: bool) -> asyncio.Lock | threading.Lock:
    return asyncio.Lock() if waits else threading.Lock()


@asynccontextmanager
async def _held(lock: asyncio.Lock | threading.Lock) -> AsyncIterator[None]:
    if isinstance(lock, asyncio.Lock):
        async with lock:
            yield
    else:
        with lock:
            yield


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise Misuse(f"a step's name is 1 to {LONGEST_NAME} printable characters, not {name!r:.100}")


def _target(function: Callable[..., Any]) -> Any:
    """The function that is called in the end."""
    while isinstance(function, partial | MethodType):
        function = function.func if isinstance(function, partial) else function.__func__
    return inspect.unwrap(function)


def _is_async(function: Callable[..., Any]) -> bool:
    target = _target(function)
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None))  # noqa: B004  what it is made of


def _blocks(function: Callable[..., Any]) -> bool:
    """Surely. What a lambda or an object does is seen when it is called."""
    target = _target(function)
    return inspect.isroutine(target) and not _is_async(target) and getattr(target, "__name__", "") != "<lambda>"


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(_target(function), "__name__", "function"))


def _wrong_kind(name: str, value: object) -> Misuse:
    if inspect.iscoroutine(value):
        value.close()
        return Misuse(f"step {name!r} of a def phase returned a coroutine: write the phase as async def")
    if inspect.isawaitable(value):
        return Misuse(f"step {name!r} of a def phase returned what must be awaited: write the phase as async def")
    return Misuse(
        f"step {name!r} of an async def phase returned nothing that can be awaited: use asyncio.to_thread for what "
        "blocks"
    )


def _codec(name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Codec:
    try:
        hint = returned(function, *args)
        if get_origin(hint) in (Awaitable, Coroutine):
            hint = get_args(hint)[-1]
        return codec_of(hint)
    except TypeError as error:
        raise Misuse(f"step {name!r}: {error}") from None


def _encode(name: str, codec: Codec, value: object) -> str:
    try:
        encoded = codec.encode(value)
    except DoesNotFit as error:
        raise Misuse(f"step {name!r} returned what its annotation does not say: {error}") from None
    except ValueError as error:
        raise Misuse(f"step {name!r} returned what cannot be kept as JSON: {error}") from None
    if len(encoded) > BODY_LIMIT:
        raise Permanent(
            f"step {name!r} returned {len(encoded)} bytes, the limit is {BODY_LIMIT}: "
            "store the data in a table or a file and return a reference"
        )
    return encoded.decode()


def _decode(name: str, codec: Codec, value: str) -> Any:
    try:
        return codec.decode(value)
    except DoesNotFit as error:
        raise Misuse(
            f"what step {name!r} returned does not fit what its function says that it returns: {error}. "
            "If that was changed, give the step a new name"
        ) from None
