"""A scheduler or an API for the time of a fault: supervised, so that it is started again when it is killed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from chaos.crew import lives, send
from chaos.observer import until
from chaos.stage import Stage
from pipeline.dev.supervise import Program, Supervisor

# periodiq has no __main__; its entry point is called as its console script would.
SCHEDULER = ("-c", "import sys, periodiq; sys.argv = ['periodiq', 'pipeline.actors']; periodiq.entrypoint()")
API = ("-m", "pipeline.front.cli.main", "api", "--port")


class Kept:
    """One process that comes back."""

    def __init__(self, supervisor: Supervisor, name: str) -> None:
        self._supervisor = supervisor
        self._name = name

    @property
    def pid(self) -> int:
        """Of the process that runs now; waits for it."""
        return int(until(self._living, 30, f"{self._name} to run"))

    def kill(self) -> None:
        """SIGKILL; returns when its successor runs."""
        send(pid := self.pid, signal.SIGKILL)
        until(lambda: self.pid != pid, 30, f"the next {self._name}")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """SIGSTOP, and SIGCONT afterwards in any case."""
        send(pid := self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            send(pid, signal.SIGCONT)

    def _living(self) -> int | None:
        process = self._supervisor._running.get(self._name)
        return process.pid if process is not None and lives(process.pid) else None


@contextmanager
def kept(stage: Stage, name: str, arguments: Sequence[str], n: int = 1) -> Iterator[list[Kept]]:
    """So many of it; they are gone afterwards. What they print is in the run's folder."""
    names = [f"{name}-{number}" for number in range(1, n + 1)]
    programs = [
        Program(one, [sys.executable, *arguments], stage.environment(), grace=5, log=stage.folder / f"{one}.log")
        for one in names
    ]
    supervisor = Supervisor(programs, say=lambda text: None)
    supervisor.start()
    try:
        yield [Kept(supervisor, one) for one in names]
    finally:
        supervisor.stop()
