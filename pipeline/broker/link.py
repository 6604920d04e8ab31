"""The one thread of a process that speaks AMQP: a connection to consume, another to publish.

Two connections, because RabbitMQ stops reading from a connection that publishes while a memory or disk
alarm lasts, and acknowledgements must still get through then.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import count
from threading import Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING

from pika.adapters.select_connection import IOLoop
from pika.exceptions import AMQPConnectionError

from pipeline.broker.swift import SwiftChannel, SwiftConnection

if TYPE_CHECKING:
    from pika.channel import Channel
    from pika.connection import Connection, Parameters

log = logging.getLogger("pipeline.broker")

RECONNECT = (0.1, 0.3, 1.0, 2.0)
# The thread is started again when it fails. If it keeps failing for so many seconds, the process ends.
GIVE_UP_AFTER = 30.0
START_AGAIN = 0.5


def _nothing() -> None:
    """A timer that has fired already."""


def _plain_thread(name: str, run: Callable[[], None]) -> Thread:
    return Thread(target=run, name=name, daemon=True)


class Link:
    """An I/O loop in a thread. Everything that touches a connection runs in it, by ``call``.

    ``guarded`` makes the thread: one that takes the process with it, should it fail for good.
    """

    def __init__(self, name: str, guarded: Callable[[str, Callable[[], None]], Thread] = _plain_thread) -> None:
        self._loop = IOLoop()
        self._thread = guarded(name, self._run)
        self._sides: list[Side] = []
        self._stopping = False
        # Kept here, and not in the loop alone: should the loop fail, the next one goes on with them.
        self._calls: deque[Callable[[], None]] = deque()
        self._timers: dict[int, tuple[float, Callable[[], None]]] = {}
        self._timer_numbers = count()

    def start(self) -> None:
        """Start the thread; connections are opened as their sides are added."""
        self._thread.start()

    def add(self, side: Side) -> None:
        """Let ``side`` connect and stay connected until ``stop``."""
        self._sides.append(side)
        self.call(side.connect)

    def call(self, work: Callable[[], None]) -> None:
        """Run ``work`` in the loop's thread, soon."""
        self._calls.append(work)
        self._loop.add_callback_threadsafe(self._work_off)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Run ``work`` in the loop's thread after a while. Only from that thread."""
        number = next(self._timer_numbers)
        self._timers[number] = (monotonic() + seconds, work)
        self._loop.call_later(seconds, lambda: self._fire(number))

    def _fire(self, number: int) -> None:
        _, work = self._timers.pop(number, (0.0, _nothing))
        work()

    def _work_off(self) -> None:
        while self._calls:
            self._calls.popleft()()

    def stop(self, timeout: float = 5.0) -> None:
        """Close the connections in order and end the thread."""
        if not self._thread.is_alive():
            return
        self._stopping = True
        self.call(self._close_all)
        self._thread.join(timeout)

    @property
    def loop(self) -> IOLoop:
        return self._loop

    def _run(self) -> None:
        failing_since: float | None = None
        while True:
            started = monotonic()
            try:
                self._loop.start()
                return
            except Exception:
                log.exception("the AMQP thread failed; it is started again")
            if failing_since is None or monotonic() - started > GIVE_UP_AFTER:
                failing_since = monotonic()
            self._begin_again(failing_since + GIVE_UP_AFTER)

    def _begin_again(self, until: float) -> None:
        """A new loop with new connections: what was on its way is in doubt, as after any lost connection."""
        while True:
            sleep(START_AGAIN)
            try:
                self._loop = IOLoop()
                break
            except OSError:
                if monotonic() > until:
                    raise
        for number, (moment, _) in self._timers.items():
            self._loop.call_later(max(moment - monotonic(), 0.0), partial(self._fire, number))
        for side in self._sides:
            side.drop()
            self.call(side.connect)

    def _close_all(self) -> None:
        for side in self._sides:
            side.close()
        self.later(0.2, self._loop.stop)


class Side:
    """A connection with one channel that comes back by itself after every loss."""

    def __init__(self, link: Link, parameters: Callable[[], list[Parameters]]) -> None:
        self._link = link
        self._parameters = parameters
        self._failures = 0
        self._closing = False
        self._connection: SwiftConnection | None = None
        self.channel: SwiftChannel | None = None

    def connect(self) -> None:
        """Open the connection; every failure schedules the next try."""
        if self._closing:
            return
        choices = self._parameters()
        try:
            self._connection = SwiftConnection(
                choices[self._failures % len(choices)],
                on_open_callback=self._opened,
                on_open_error_callback=self._lost,
                on_close_callback=self._lost,
                custom_ioloop=self._link.loop,
            )
        except OSError as error:
            # No file descriptor left, say: there may be one again in a moment.
            self._connection = None
            self._try_again(error)

    def drop(self) -> None:
        """Forget the connection: its loop is gone."""
        was_open, self.channel, self._connection = self.channel is not None, None, None
        if was_open:
            self.on_lost()

    def close(self) -> None:
        """Close for good."""
        self._closing = True
        if self._connection is not None and self._connection.is_open:
            self._connection.close()

    def together(self) -> AbstractContextManager[None]:
        """What is sent meanwhile goes to RabbitMQ in one piece."""
        return self._connection.corked() if self._connection is not None else nullcontext()

    def on_ready(self, channel: SwiftChannel) -> None:
        """The channel is open: declare, consume, …"""

    def on_lost(self) -> None:
        """Everything that was on its way over the channel is in doubt."""

    def _opened(self, connection: Connection) -> None:
        connection.channel(on_open_callback=self._channel_opened)

    def _channel_opened(self, channel: Channel) -> None:
        assert isinstance(channel, SwiftChannel)
        channel.add_on_close_callback(self._channel_closed)
        self.channel = channel
        self._failures = 0
        self.on_ready(channel)

    def _channel_closed(self, channel: Channel, reason: Exception) -> None:
        if self._connection is not None and self._connection.is_open and not self._closing:
            log.error("RabbitMQ closed the channel: %s", reason)
            self._failures += 1
            self._connection.close()

    def _lost(self, connection: Connection, reason: object) -> None:
        if connection is not self._connection:
            return
        was_open, self.channel = self.channel is not None, None
        if was_open:
            self.on_lost()
        if not self._closing:
            self._try_again(reason)

    def _try_again(self, reason: object) -> None:
        delay = RECONNECT[min(self._failures, len(RECONNECT) - 1)]
        self._failures += 1
        log.warning("no connection to RabbitMQ (%s); trying again in %.1f s", _say(reason), delay)
        self._link.later(delay, self.connect)


def _say(reason: object) -> str:
    """One line about a lost connection; never the address, which may hold a password."""
    if isinstance(reason, AMQPConnectionError) and reason.args and isinstance(reason.args[0], Exception):
        reason = reason.args[0]
    return f"{type(reason).__name__}: {reason}".split("\n", 1)[0][:200]
