"""``Done(write=…)`` with an async function: it runs on the event loop, its statements in the thread that commits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from pipeline.journey.checkpoint import Interrupted

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, Executable

    from pipeline.declare.job import Done, Write
    from pipeline.journey.attempt import Attempt

# How soon a write that waits for something else notices that its attempt must stop.
LOOK = 0.2


class LoopConnection:
    """The transaction that ends the phase, as an async function writes with it."""

    def __init__(self, ask: Callable[[Callable[[Connection], Any]], Awaitable[Any]]) -> None:
        self._ask = ask

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """As SQLAlchemy's Connection.execute."""
        return cast("CursorResult[Any]", await self._ask(lambda db: db.execute(statement, parameters)))

    async def scalar(self, statement: Executable, parameters: Any = None) -> Any:
        """The first column of the first row; None if there is none."""
        return await self._ask(lambda db: db.scalar(statement, parameters))

    async def run_sync(self, work: Callable[[Connection], Any]) -> Any:
        """Whatever ``work`` does with the connection itself."""
        return await self._ask(work)


def as_write(done: Done, attempt: Attempt, loop: asyncio.AbstractEventLoop) -> Write:
    """A function for the thread that holds the transaction: it makes the statements that the coroutine asks for."""
    function = cast("Callable[[LoopConnection], Awaitable[None]]", done.write)

    def write(connection: Connection) -> None:
        asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

        async def ask(work: Callable[[Connection], Any]) -> Any:
            answer: asyncio.Future[Any] = loop.create_future()
            asked.put(partial(_answer, loop, answer, work, connection))
            return await answer

        async def run() -> None:
            await function(LoopConnection(ask))

        running = asyncio.run_coroutine_threadsafe(run(), loop)
        running.add_done_callback(lambda _: asked.put(None))
        while True:
            try:
                request = asked.get(timeout=LOOK)
            except Empty:
                if attempt.reason is not None:
                    running.cancel()
                    raise Interrupted from None
                continue
            if request is None:
                running.result()
                return
            request()

    return write


def _answer(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any], work: Callable[[Connection], Any], db: Connection
) -> None:
    try:
        tell = partial(_set, answer, work(db), None)
    except Exception as error:
        tell = partial(_set, answer, None, error)
    loop.call_soon_threadsafe(tell)


def _set(answer: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(value)
