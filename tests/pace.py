"""How fast the machine is just now, so that a bound in seconds fails for the product's sake alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

# A machine that has time connects to PostgreSQL in a third of this.
QUIET = 0.05


class Pace:
    """The slowest of what was tried beside the test, in seconds."""

    def __init__(self) -> None:
        self.slowest = 0.0

    def allows(self, seconds: float) -> float:
        """What takes ``seconds`` at most on a machine that has time, in seconds of this one."""
        return seconds * max(1.0, self.slowest / QUIET)


@contextmanager
def pace(dsn: str) -> Iterator[Pace]:
    """Connects again and again meanwhile: like a recovery, that is work of several processes for a few milliseconds.

    >>> with pace(place.database_url) as machine:
    ...     took = place.kill_holder(job)
    >>> assert took < machine.allows(2)
    """
    measured, over = Pace(), threading.Event()

    def probe() -> None:
        while True:
            began = time.monotonic()
            try:
                psycopg.connect(dsn).close()
                measured.slowest = max(measured.slowest, time.monotonic() - began)
            except psycopg.OperationalError:
                # The test's own doing, which is over soon.
                pass
            if over.wait(0.05):
                return

    beside = threading.Thread(target=probe)
    beside.start()
    try:
        yield measured
    finally:
        over.set()
        beside.join()
