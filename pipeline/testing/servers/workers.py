"""Real worker processes of a test: ``dramatiq pipeline.actors``, started, watched and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

READY = "ready for action"
BOOT_SECONDS = 60.0
LOOK = 0.02


class Workers:
    """The worker processes of one test. ``close`` leaves none behind."""

    def __init__(self, folder: Path, cwd: Path) -> None:
        self._folder = folder
        self._cwd = cwd
        self._started: list[subprocess.Popen[bytes]] = []
        self._logs: list[Path] = []

    def start(
        self, environment: Mapping[str, str], *, threads: int, processes: int, queues: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """Does not wait until it is ready (see ``wait_until_ready``)."""
        log = self._folder / f"worker-{len(self._started)}.log"
        command = worker_command(threads=threads, processes=processes, queues=queues)
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=self._cwd, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.adopt(process, log)
        return process

    def adopt(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """One that was started otherwise is ended with the others."""
        self._started.append(process)
        self._logs.append(log)

    def wait_until_ready(self, processes: int = 1) -> None:
        """Until the newest has booted so many processes. AssertionError with its log if it does not."""
        newest, log = self._started[-1], self._logs[-1]

        def ready() -> bool:
            return newest.poll() is not None or log.read_text(errors="replace").count(READY) >= processes

        if not wait(ready, BOOT_SECONDS) or newest.poll() is not None:
            raise AssertionError(f"the worker did not start:\n{log.read_text(errors='replace')[-6000:]}")

    def lives(self) -> bool:
        """Whether the newest runs."""
        return bool(self._started) and self._started[-1].poll() is None

    def kill(self) -> None:
        """All of them, at once, with their processes."""
        for process in self._started:
            if process.poll() is None:
                kill_group(process.pid)
                process.wait()

    @property
    def count(self) -> int:
        """How many have been started."""
        return len(self._started)

    def log(self, process: subprocess.Popen[bytes]) -> str:
        """What one of them has said."""
        return self._logs[self._started.index(process)].read_text(errors="replace")

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in self._logs)

    def close(self) -> None:
        for process in self._started:
            kill_group(process.pid)
            process.wait()


def worker_command(*, threads: int, processes: int, queues: tuple[str, ...] = ()) -> list[str]:
    command = [sys.executable, "-m", "dramatiq", "pipeline.actors"]
    command += ["--processes", str(processes), "--threads", str(threads)]
    return [*command, "--queues", *queues] if queues else command


def wait(condition: Callable[[], object], seconds: float) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK)
    return True


def kill_group(pid: int) -> None:
    """The process and its children; one that is gone is fine."""
    try:
        os.killpg(pid, signal.SIGCONT)
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
