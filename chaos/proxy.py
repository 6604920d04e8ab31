"""A bad network between one worker and a server: a TCP proxy whose manners can be changed while it runs."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Literal

from pipeline.dev.services.ports import LOOPBACK

Mode = Literal["pass", "cut", "delay", "hold_up", "hold_down", "half_open"]
DELAY = 0.3
LOOK = 0.05


class Proxy:
    """Each direction of a connection has a thread.

    cut: connections are reset and refused. delay: every piece comes 0.3 s late. hold_up, hold_down: nothing goes to
    (comes from) the server, nobody is told, and it arrives later, as after a stalled route. half_open: the server
    sees its connections end, the worker hears nothing until the mode changes, when its side is reset.
    """

    def __init__(self, target: int, host: str = LOOPBACK) -> None:
        self._target = target
        self._mode: Mode = "pass"
        self._closing = False
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._reset_all()

    @contextlib.contextmanager
    def behaving(self, mode: Mode) -> Iterator[int]:
        """So for a while; yields how many connections it hit. Afterwards the network is well again."""
        with self._lock:
            hit = len(self._pairs)
            pairs = list(self._pairs)
        self._mode = mode
        if mode == "cut":
            self._reset_all()
        if mode == "half_open":
            for _, server in pairs:
                _shut(server)
        try:
            yield hit
        finally:
            self._mode = "pass"
            if mode == "half_open":
                self._reset_all()

    def _accept(self) -> None:
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(client,), name="proxy", daemon=True).start()

    def _join(self, client: socket.socket) -> None:
        while self._mode in ("hold_up", "hold_down", "half_open") and not self._closing:
            time.sleep(LOOK)
        try:
            if self._mode == "cut":
                raise ConnectionRefusedError
            server = socket.create_connection((LOOPBACK, self._target), timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._pairs.add((client, server))
        threading.Thread(target=self._pump, args=(server, client, "hold_down"), name="proxy", daemon=True).start()
        self._pump(client, server, "hold_up")
        with self._lock:
            self._pairs.discard((client, server))

    def _pump(self, source: socket.socket, sink: socket.socket, held_by: Mode) -> None:
        """Until one end closes; then close the other, unless the mode keeps that from being noticed."""
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                self._wait(held_by)
                sink.sendall(piece)
        while self._mode == "half_open" and not self._closing:
            time.sleep(LOOK)
        _shut(source)
        _shut(sink)

    def _wait(self, held_by: Mode) -> None:
        if self._mode == "delay":
            time.sleep(DELAY)
        while self._mode == held_by and not self._closing:
            time.sleep(LOOK)

    def _reset_all(self) -> None:
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                _shut(end)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
