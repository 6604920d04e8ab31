"""The worker processes, each under a Dramatiq of its own and started again when it dies."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.observer import Observer, until
from pipeline.dev.supervise import Program, Supervisor

THREADS = 8
COMMAND = [sys.executable, "-m", "dramatiq", "pipeline.actors", "--processes", "1", "--threads", str(THREADS)]
# One that has just begun has not declared all its queues.
LIVING = """SELECT id, no, pid FROM pipeline.workers
    WHERE stopped_at IS NULL AND threads > 0 AND started_at < now() - interval '1 second' ORDER BY no"""
LEADER = """SELECT w.id FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN pipeline.workers w ON a.application_name = 'pipeline relay ' || w.no
    WHERE a.datname = current_database() AND l.locktype = 'relation' AND l.relation = 'pipeline.relay_leader'::regclass
      AND l.granted"""


@dataclass(frozen=True)
class Worker:
    """A worker process as PostgreSQL knows it."""

    id: str
    no: int
    pid: int

    @property
    def number(self) -> int:
        """Its place in the crew, by the name that its id begins with; 0 for a guest."""
        found = re.match(r"chaos-(\d+)-", self.id)
        return int(found[1]) if found else 0

    @property
    def master(self) -> int:
        """Dramatiq's own process above it."""
        return int(_stat(self.pid)[1])


class Crew:
    """``stop`` leaves no process behind."""

    def __init__(self, environments: Sequence[Mapping[str, str]], folder: Path, consumers: Callable[[], int]) -> None:
        self._consumers = consumers
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
        """Wait until so many work and consume."""

        def enough() -> list[Worker] | None:
            found = self.living(observer)
            return found if len(found) >= n and self._consumers() >= n else None

        working: list[Worker] = until(enough, seconds, f"{n} workers to work", pause=0.1)
        return working

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
