"""Run the sandbox: in the foreground, or in a thread of a test on a free port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from sandbox.app import app
from sandbox.wikidata_entity import Entity


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox, seen from a test."""

    url: str

    def add_fault(self, **fault: Any) -> None:
        """Lay out a fault, for example ``add_fault(match="/sites/3", status=503, times=2)``."""
        httpx.post(f"{self.url}/_faults", json=fault).raise_for_status()

    def stats(self) -> dict[str, Any]:
        """The counters since the last reset."""
        found: dict[str, Any] = httpx.get(f"{self.url}/_stats").json()
        return found

    def reset(self) -> None:
        """Forget every fault and every count."""
        httpx.post(f"{self.url}/_reset").raise_for_status()


def serve(host: str, port: int) -> None:
    """Serve in this thread until the process is told to stop."""
    uvicorn.Server(_config(app(), host, port, "info")).run()


@contextmanager
def running_sandbox(port: int = 0, *, known: Iterable[Entity] | None = None) -> Iterator[Sandbox]:
    """A real server on a loopback port, a free one by default; it accepts connections before the block begins.

    ``known`` is what its Wikidata holds, instead of the entities that come with it.
    """
    # Named as TCP, so that asyncio sends at once what is written: an answer in two parts is 40 ms late otherwise.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(512)
        server = uvicorn.Server(_config(app(known), "127.0.0.1", 0, "critical"))
        thread = threading.Thread(target=server.run, args=([listener],), name="sandbox", daemon=True)
        thread.start()
        try:
            yield _ready(Sandbox(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        finally:
            server.should_exit = server.force_exit = True
            thread.join(timeout=10)


def _config(served: ASGIApp, host: str, port: int, level: str) -> uvicorn.Config:
    return uvicorn.Config(served, host=host, port=port, log_level=level, access_log=False, timeout_graceful_shutdown=1)


def _ready(sandbox: Sandbox) -> Sandbox:
    # the socket listens already: this request waits in its backlog until the server takes it
    httpx.get(f"{sandbox.url}/_health", timeout=10).raise_for_status()
    return sandbox
