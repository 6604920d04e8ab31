"""The worker's part of isolated attempts, with a real fork server and real children, and without a broker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pipeline.declare import registry
from pipeline.declare.job import AsJson, Done, decode
from pipeline.journey.attempt import Attempt, Held
from pipeline.observe import logs
from pipeline.worker.deadlines import Watch
from pipeline.worker.isolation.children import Children
from pipeline.worker.isolation.run import run_isolated
from pipeline.worker.process import WorkerProcess
from tests.attempts import attempt as attempt_at


class Warm:
    """What ``run_isolated`` needs of a worker, and nothing else."""

    def __init__(self, folder: Path, *, threads: int = 4, idle_seconds: float = 60.0, look: float = 15.0) -> None:
        self.temp_root, self.id, self.no, self.log = folder, "w", 1, logs.get("test")
        self.held = Held()
        self.watch = Watch(self.held, lambda _: None)
        self.watch.start()
        self.forks = 0
        self.children = Children(threads, "console", "INFO", idle_seconds=idle_seconds, look=look)
        self._fork, self.children._forking.fork = self.children._forking.fork, self._counted  # type: ignore[method-assign]
        self.children.start(ahead=True)

    def _counted(self) -> Any:
        self.forks += 1
        return self._fork()

    def attempt(self, phase: str = "act", **body: object) -> Attempt:
        attempt = attempt_at(registry.find_phase(f"warm.{phase}").spec)
        attempt.body = json.dumps(body)
        return attempt

    def isolated(self, attempt: Attempt) -> dict[str, Any]:
        done = run_isolated(cast("WorkerProcess", self), attempt)
        assert isinstance(done, Done)
        return dict(decode(done.result.text)) if isinstance(done.result, AsJson) else {}

    def run(self, phase: str = "act", **body: object) -> dict[str, Any]:
        return self.isolated(self.attempt(phase, **body))

    def pid(self, phase: str = "act") -> int:
        return int(self.run(phase)["pid"])

    def server(self) -> int:
        process = self.children._forking._process
        assert process is not None
        return process.pid

    def close(self) -> None:
        self.children.stop()
        self.watch.stop()


def until(condition: Callable[[], Any], what: str, timeout: float = 30.0) -> Any:
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {timeout} s for {what}"
        time.sleep(0.01)
    return found


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """``act`` in a thread of its own, which has ended when the block has."""
    with ThreadPoolExecutor(1) as beside:
        acting = beside.submit(act)
        try:
            yield
        finally:
            acting.result()
