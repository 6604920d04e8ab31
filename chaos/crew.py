"""The worker processes, each under a Dramatiq of its own and started again when it dies."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.observer import Observer, until
from pipeline.front.supervise import Program, Supervisor

THREADS = 8
COMMAND = [sys.executable, "-m", "dramatiq", "pipeline.actors", "--processes", "1", "--threads", str(THREADS)]
# One that has beaten once has its consumers, too.
LIVING = """SELECT id, no, pid FROM workers
    WHERE stopped_at IS NULL AND threads > 0 AND heartbeat_at > started_at + interval '0.5 second' ORDER BY no"""
LEADER = """SELECT w.id FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN workers w ON a.application_name = 'pipeline relay ' || w.no
    WHERE a.datname = current_database() AND l.locktype = 'relation' AND l.relation = 'relay_seat'::regclass
      AND l.granted"""


@dataclass(frozen=True)
class Worker:
    """A worker process as PostgreSQL knows it."""

    id: str
    no: int
    pid: int

    @property
    def master(self) -> int:
        """Dramatiq's own process above it."""
        return int(_stat(self.pid)[1])


class Crew:
    """``stop`` leaves no process behind."""

    def __init__(self, environments: Sequence[Mapping[str, str]], folder: Path) -> None:
        self.size = len(environments)
        self.logs = [folder / f"worker-{n}.log" for n in range(1, self.size + 1)]
        # Of a worker that a fault starts beside them.
        self.guest_log = folder / "worker-guest.log"
        programs = [
            Program(f"worker-{n}", COMMAND, environment, grace=10, log=log)
            for n, (environment, log) in enumerate(zip(environments, self.logs, strict=True), 1)
        ]
        self._supervisor = Supervisor(programs, say=lambda text: None)

    def start(self) -> None:
        self._supervisor.start()

    def stop(self) -> None:
        self._supervisor.stop()

    def living(self, observer: Observer) -> list[Worker]:
        """Those that have begun to work, oldest first."""
        return [Worker(**row) for row in observer.rows(LIVING) if lives(row["pid"])]

    def at_least(self, observer: Observer, n: int, seconds: float = 90) -> list[Worker]:
        """Wait until so many work."""
        found: list[Worker] = until(
            lambda: w if len(w := self.living(observer)) >= n else None, seconds, f"{n} workers to work"
        )
        return found

    def leader(self, observer: Observer) -> str | None:
        """The worker whose relay sends."""
        found: str | None = observer.one(LEADER)
        return found

    def lines_about(self, word: str, most: int = 12) -> list[str]:
        """What the workers logged about a job."""
        texts = (log.read_text(errors="replace") for log in [*self.logs, self.guest_log] if log.exists())
        return [line for text in texts for line in text.splitlines() if word in line][:most]


def send(pid: int, number: signal.Signals) -> bool:
    """Signal one process; False if it is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def lives(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return _stat(pid)[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
