"""Waiting for a server, with a deadline and an error that quotes the server's own words."""

import time
from collections.abc import Callable
from pathlib import Path

from pipeline.dev.services.processes import Process, ServiceError, alive


def wait_until(ready: Callable[[], bool], process: Process, log: Path, name: str, seconds: float) -> None:
    """Return once `ready`; raise ServiceError if the process ends or the time is up before that."""
    deadline = time.monotonic() + seconds
    while not ready():
        if not alive(process):
            raise ServiceError(f"{name} ended while it started: see its log for the reason.\n{tail(log)}")
        if time.monotonic() > deadline:
            raise ServiceError(f"{name} did not answer within {seconds:.0f} s: see its log.\n{tail(log)}")
        time.sleep(0.05)


def tail(log: Path, lines: int = 15) -> str:
    """The end of a server's log, for an error message."""
    text = log.read_text(errors="replace").splitlines() if log.exists() else ["(it wrote nothing)"]
    return "\n".join([f"The end of {log}:", *("  " + line for line in text[-lines:])])
