"""Run the sandbox: in the foreground, or in a thread of a test on a free port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from sandbox.app import app


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
    uvicorn.Server(_config(host, port, "info")).run()


@contextmanager
def running_sandbox() -> Iterator[Sandbox]:
    """A real server on a free loopback port; it accepts connections before the block begins."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        server = uvicorn.Server(_config("127.0.0.1", 0, "critical"))
        thread = threading.Thread(target=server.run, args=([listener],), name="sandbox", daemon=True)
        thread.start()
        try:
            yield _ready(Sandbox(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        finally:
            server.should_exit = server.force_exit = True
            thread.join(timeout=10)


def _config(host: str, port: int, level: str) -> uvicorn.Config:
    return uvicorn.Config(app(), host=host, port=port, log_level=level, access_log=False, timeout_graceful_shutdown=1)


def _ready(sandbox: Sandbox) -> Sandbox:
    # the socket listens already: this request waits in its backlog until the server takes it
    httpx.get(f"{sandbox.url}/_health", timeout=10).raise_for_status()
    return sandbox
