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
        sockets: list[Any] = [self._here] if connection is None else [self._here, connection.fileno()]
        ready, _, _ = select.select(sockets, [], [], max(timeout, 0.0))
        if self._here in ready:
            try:
                self._here.recv(4096)
            except BlockingIOError:
                pass
        return len(ready) > (self._here in ready)
