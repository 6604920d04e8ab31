"""What belongs to one event loop and cannot serve another: connections, and locks of coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class PerLoop(Generic[Key, Value]):
    """One value a key for each event loop, made at its first use and closed when its loop ends."""

    def __init__(self, make: Callable[[Key], Value], close: Callable[[Value], Awaitable[None]] | None = None) -> None:
        self._make = make
        self._close = close
        self._loops: dict[asyncio.AbstractEventLoop, dict[Key, Value]] = {}
        self._ends: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}

    async def get(self, key: Key) -> Value:
        """The running loop's value for ``key``. Only the loop itself changes what it has, so that nothing is locked."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            await self._begin(loop)
        values = self._loops[loop]
        if key not in values:
            values[key] = self._make(key)
        return values[key]

    def forget(self) -> None:
        """Make everything anew, for tests. What is in use stays open until its loop ends."""
        for values in list(self._loops.values()):
            values.clear()

    async def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        for other in list(self._loops):
            if other.is_closed():
                self._forget_loop(other)
        self._loops[loop] = {}
        # A loop tells that it ends by closing the async generators that were begun in it.
        self._ends[loop] = self._until_the_end(loop)
        await anext(self._ends[loop])

    async def _until_the_end(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
        values = self._loops[loop]
        try:
            yield
        finally:
            self._forget_loop(loop)
            if self._close is not None:
                for value in values.values():
                    await self._close(value)

    def _forget_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loops.pop(loop, None)
        self._ends.pop(loop, None)
