"""Wait for a connection to have something to say, for a wake-up from another thread, or for time to pass."""

from __future__ import annotations

import select
import socket
from typing import Any

import psycopg


class Waiter:
    """One thread waits, any thread wakes it. No polling."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._there.setblocking(False)

    def wake(self) -> None:
        """End the current wait, or the next one."""
        try:
            self._there.send(b"!")
        except BlockingIOError:
            pass

    def wait(self, connection: psycopg.Connection[Any] | None, timeout: float) -> bool:
        """True when ``connection`` became readable: a notification, or the server hung up."""
        # Not select(), which fails in a process with more than 1,024 files open.
        poll = select.poll()
        poll.register(self._here, select.POLLIN)
        if connection is not None:
            poll.register(connection.fileno(), select.POLLIN)
        ready = [handle for handle, _ in poll.poll(max(timeout, 0.0) * 1000)]
        if self._here.fileno() in ready:
            try:
                self._here.recv(4096)
            except BlockingIOError:
                pass
        return len(ready) > (self._here.fileno() in ready)
