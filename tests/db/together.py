"""Several sessions at the same moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import monotonic
from typing import TypeVar

from tests.db.steps import Db, one

Result = TypeVar("Result")


def at_once(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run all of them at the same moment, each in a thread of its own."""
    start = Barrier(len(works))

    def run(work: Callable[[], Result]) -> Result:
        start.wait(10)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works, timeout=60))


def until_blocked(db: Db, pid: int) -> None:
    """Wait until that session waits for a lock."""
    deadline = monotonic() + 10
    while not one(db, "SELECT cardinality(pg_blocking_pids(%s)) > 0", pid):
        assert monotonic() < deadline, f"session {pid} never had to wait"
