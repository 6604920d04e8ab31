"""Run programs, start them again when they die, and stop them in order. One death takes nobody else down."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

STEADY = 30.0
# How soon a second wish to stop is noticed.
HURRY = 0.1
PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0)


@dataclass
class Program:
    """One program that must run. ``grace`` is how long it may take to stop; ``log`` takes what it prints."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    grace: float = 30.0
    log: Path | None = None


def start(program: Program) -> subprocess.Popen[bytes]:
    """In a session and a process group of its own."""
    log = program.log.open("ab") if program.log else None
    try:
        return subprocess.Popen(
            program.command,
            env={**os.environ, **program.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT if log else None,
            start_new_session=True,
        )
    finally:
        if log:
            log.close()


class Supervisor:
    """A thread a program: start, wait, start again with growing pauses. ``start``: how a program is started."""

    def __init__(
        self,
        programs: Sequence[Program],
        say: Callable[[str], None],
        start: Callable[[Program], subprocess.Popen[bytes]] = start,
    ) -> None:
        self._programs = programs
        self._say = say
        self._start = start
        self._stop, self._hurry = threading.Event(), threading.Event()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._threads = [threading.Thread(target=self._keep, args=(p,), name=p.name, daemon=True) for p in programs]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask every program to stop, wait for its grace or a second wish to stop, then kill what is left."""
        self._stop.set()
        for program in self._running.values():
            _signal(program, signal.SIGTERM)
        deadline = monotonic() + max((p.grace for p in self._programs), default=0)
        for thread in self._threads:
            while thread.is_alive() and monotonic() < deadline and not self._hurry.is_set():
                thread.join(HURRY)
        for program in self._running.values():
            _signal(program, signal.SIGKILL)

    def wait(self) -> None:
        """Until somebody asks for a stop."""
        self._stop.wait()

    def ask_to_stop(self) -> None:
        """Asked for a second time: at once."""
        (self._hurry if self._stop.is_set() else self._stop).set()

    @property
    def hurried(self) -> bool:
        return self._hurry.is_set()

    def _keep(self, program: Program) -> None:
        deaths = 0
        while not self._stop.is_set():
            started = monotonic()
            process = self._start(program)
            self._running[program.name] = process
            if self._stop.is_set():
                _signal(process, signal.SIGTERM)
            code = process.wait()
            if self._stop.is_set():
                return
            # Whatever the program left behind (a worker whose master was killed) goes with it.
            _signal_group(process.pid, signal.SIGKILL)
            deaths = 1 if monotonic() - started > STEADY else deaths + 1
            pause = PAUSES[min(deaths, len(PAUSES)) - 1]
            self._say(f"{program.name} ended ({_how(code)}); starting it again in {pause:g} s")
            self._stop.wait(pause)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        _signal_group(process.pid, number) if number == signal.SIGKILL else process.send_signal(number)


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _how(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
