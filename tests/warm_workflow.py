"""Isolated phases for tests/flow/test_warm_children.py: each does what its body says. A fork server imports this."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pipeline import Job, Transient, Workflow

IN_FORK_SERVER = "fork_server" in sys.argv[0]
# Address space only: the limit is on that, and nobody has to write to it.
BALLAST = bytearray(int(os.environ.get("WARM_BALLAST_MB", "0")) << 20)
if IN_FORK_SERVER and "WARM_THREAD" in os.environ:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True, name="busybody").start()
if IN_FORK_SERVER and "WARM_BROKEN" in os.environ:
    raise RuntimeError("this module is broken")
if IN_FORK_SERVER:
    time.sleep(float(os.environ.get("WARM_SLOW", "0")))

loaded: list[int] = []
kept: list[bytes] = []


def _load(job: Job) -> dict[str, Any]:
    """As a phase does that needs a model."""
    if not loaded:
        loaded.append(1)
        with Path(job.body["file"]).open("a") as loads:
            loads.write(f"{os.getpid()}\n")
    return {"pid": os.getpid()}


def _die(job: Job) -> None:
    os.kill(os.getpid(), getattr(signal, job.body["signal"]))
    time.sleep(1000)


def _take(job: Job) -> dict[str, Any]:
    """Memory for this job alone, or for good."""
    memory = b"x" * (int(job.body["mb"]) << 20)
    if job.body.get("keep"):
        kept.append(memory)
    return {"pid": os.getpid()}


def _family(job: Job) -> None:
    """A child of the child."""
    process = subprocess.Popen(["sleep", "1000"])
    Path(job.body["file"]).write_text(f"{os.getpid()} {process.pid}")
    time.sleep(1000)


def _raise(job: Job) -> None:
    raise {"unexpected": ValueError, "planned": Transient}[job.body["error"]]("out of paper")


async def _loop(job: Job) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"loop": id(asyncio.get_running_loop())}


ACTIONS: dict[str, Any] = {
    "pid": lambda job: {"pid": os.getpid()},
    "load": _load,
    "die": _die,
    "exit": lambda job: os._exit(3),
    "hang": lambda job: time.sleep(1000),
    "take": _take,
    "echo": lambda job: {"text": job.body["text"], "pid": os.getpid()},
    "family": _family,
    "raise": _raise,
    "loop": _loop,
}


def act(job: Job) -> Any:
    return ACTIONS[job.body.get("do", "pid")](job)


warm = Workflow("warm")
warm.phase("act", isolated=True)(act)
warm.phase("other", isolated=True)(act)
warm.phase("twice", isolated=True, max_jobs=2)(act)
warm.phase("small", isolated=True, memory_limit=200 << 20)(act)
warm.phase("brief", isolated=True, time_limit=1.0)(act)
