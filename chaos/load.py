"""Jobs in a steady stream, submitted through every outage."""

from __future__ import annotations

import random
import threading
import time
from typing import Any
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from chaos.subject import ENDING, WAITING, Subject, fate
from pipeline import submit_many

PATIENCE = 120.0
TICK = 0.25


class Load:
    """A burst, then so many jobs a second until ``stop``.

    A submit whose answer was lost with the connection is repeated under the same keys, so that ``jobs`` has exactly
    the jobs that exist.
    """

    def __init__(self, subject: Subject, label: str, chance: random.Random) -> None:
        self._subject = subject
        self._label = label
        self._chance = chance
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._number = 0
        self._error: Exception | None = None
        self.jobs: list[UUID] = []
        # Those of them that wait for a word (chaos.words).
        self.waiting: list[UUID] = []
        # How some of them are meant to end, if that is not by succeeding.
        self.meant: dict[UUID, str] = {}

    def start(self, burst: int, rate: float) -> None:
        """Return when the burst is submitted."""
        self._submit(burst)
        self._thread = threading.Thread(target=self._drip, args=(rate,), name="load", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Submit no more; raises what stopped the stream before its time."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _drip(self, rate: float) -> None:
        owed = 0.0
        try:
            while not self._stop.wait(TICK):
                owed += rate * TICK
                self._submit(int(owed))
                owed -= int(owed)
        except Exception as error:
            self._error = error

    def _submit(self, n: int) -> None:
        numbers = range(self._number, self._number + n)
        self._number += n
        bodies = {number: self._subject.body(number, self._chance) for number in numbers}
        stream = self._subject.stream
        for workflow in dict.fromkeys(stream):
            self._insist(workflow, {n: body for n, body in bodies.items() if stream[n % len(stream)] == workflow})

    def _insist(self, workflow: str, bodies: dict[int, dict[str, Any]]) -> None:
        keys = [f"{self._label}:{number}" for number in bodies]
        deadline = time.monotonic() + PATIENCE
        while bodies:
            try:
                jobs = submit_many(None, workflow, list(bodies.values()), keys=keys)
                self.jobs += jobs
                self.waiting += jobs if workflow == WAITING else []
                self.meant |= {job: fate(n) for job, n in zip(jobs, bodies, strict=True) if workflow == ENDING}
                return
            except SQLAlchemyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
