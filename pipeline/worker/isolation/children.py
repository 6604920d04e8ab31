"""The child processes of one worker: those that wait for their phase's next job, and how one is talked to."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Iterator
from time import monotonic
from typing import Any

from pipeline.worker.isolation import wire
from pipeline.worker.isolation.forking import LOOK, Forking

# Then a child that has nothing to do goes.
IDLE = 60.0
MOST_SAID = 100


class Child:
    """A worker's end of one child process. ``jobs`` is how many it has been given."""

    def __init__(self, channel: socket.socket, queue: str) -> None:
        self.queue = queue
        self.jobs = 0
        self.idle_since = 0.0
        self.began = False
        self.ended = False
        # Lines that are not ours: what Python says when a signal kills it.
        self.said: deque[str] = deque(maxlen=MOST_SAID)
        self._channel = channel

    def order(self, text: bytes) -> None:
        """Give it a job. If it is dead, that is heard from ``messages``."""
        self.jobs += 1
        self.began = False
        try:
            self._channel.sendall(text)
        except OSError:
            pass

    def messages(self) -> Iterator[tuple[str, Any]]:
        """What it says about its job. The last one is that it died; without that, its fork server did, too."""
        if self.jobs > 1:
            # That it began tells nobody anything: the thread sleeps until there is more to hear.
            self._wake_for(len(wire.BEGAN_LINE) + 1)
        rest = b""
        while heard := self._receive():
            if self.jobs > 1:
                self._wake_for(1)
            *lines, rest = (rest + heard).split(b"\n")
            for kind, content in map(wire.read, lines):
                self.began = self.began or kind == wire.BEGAN
                if kind == wire.SAID:
                    self.said.append(content)
                else:
                    yield kind, content

    def end(self) -> None:
        """Kill it. Whoever listens to it hears that it died, or that nobody is there. For any thread, and never waits.

        A child that has not begun may not even be forked yet: nothing more is heard of it.
        """
        self.ended = True
        known = self.began or self.jobs > 1
        try:
            self._channel.shutdown(socket.SHUT_WR if known else socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        """Kill it if it lives, and forget it."""
        self._channel.close()

    def waits(self) -> bool:
        """Whether it lives: a child without a job says nothing."""
        try:
            self._channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def _receive(self) -> bytes:
        try:
            return self._channel.recv(1 << 16)
        except OSError:
            # It died with an order that it had not read.
            return b""

    def _wake_for(self, size: int) -> None:
        self._channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)


class Children:
    """A thread of the worker has one child at a time, and as many again may wait for a job: the longest idle makes way.

    Idle children are kept by phase, so that each keeps what its phase has loaded.
    """

    def __init__(
        self, threads: int, log_format: str, log_level: str, *, idle_seconds: float = IDLE, look: float = LOOK
    ) -> None:
        self._threads = threads
        self._idle_seconds = idle_seconds
        self._idle: list[Child] = []
        self._lock = threading.Lock()
        self._forking = Forking(log_format, log_level, self._dismiss_idle, look)

    def start(self, *, ahead: bool) -> None:
        """``ahead``: get ready to fork now, and not at the first job."""
        self._forking.start(ahead=ahead)

    def stop(self) -> None:
        self._forking.stop()
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.close()

    def take(self, queue: str, *, unused: bool = False) -> Child:
        """A child for one job of the phase: one that has worked for it before, or a new one."""
        with self._lock:
            while not unused and (child := self._pop(queue)) is not None:
                if child.waits():
                    return child
                child.close()
        return Child(self._forking.fork(), queue)

    def give_back(self, child: Child, *, reuse: bool) -> None:
        """Its job is over. ``reuse``: it may have another one."""
        if not reuse or child.ended:
            child.close()
            return
        child.idle_since = monotonic()
        with self._lock:
            self._idle.append(child)
            longest_idle = self._idle.pop(0) if len(self._idle) > 2 * self._threads else None
        if longest_idle is not None:
            longest_idle.close()

    def _pop(self, queue: str) -> Child | None:
        """The one that waits for the shortest time, so that those which are not needed get old."""
        for place in range(len(self._idle) - 1, -1, -1):
            if self._idle[place].queue == queue:
                return self._idle.pop(place)
        return None

    def _dismiss_idle(self) -> None:
        oldest = monotonic() - self._idle_seconds
        with self._lock:
            old = [child for child in self._idle if child.idle_since <= oldest]
            self._idle = [child for child in self._idle if child.idle_since > oldest]
        for child in old:
            child.close()
