"""Somebody who tells jobs the word that they wait for: before they wait, while they do, or too late."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from chaos.subject import WORD
from pipeline import signal

TICK, LATEST = 0.1, 2.8
# So many of a hundred are never told.
SILENCE = 25


class Words:
    """Through every outage. ``delivered`` has the jobs of which PostgreSQL said that they continue with it."""

    def __init__(self, waiting: Sequence[UUID], chance: random.Random) -> None:
        self._waiting = waiting
        self._chance = chance
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="words", daemon=True)
        # When each of them is told; the list of those that wait grows.
        self._due: list[tuple[float, UUID]] = []
        self._seen = 0
        self.delivered: set[UUID] = set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Say no more."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(TICK):
            new = list(self._waiting[self._seen :])
            self._seen += len(new)
            chosen = [job for job in new if self._chance.randrange(100) >= SILENCE]
            self._due += [(time.monotonic() + self._chance.uniform(0, LATEST), job) for job in chosen]
            self._due = [one for one in self._due if one[0] > time.monotonic() or not self._tell(one[1])]

    def _tell(self, job: UUID) -> bool:
        """False if nobody knows whether it was: then it is told again. A second word is kept, and nobody takes it."""
        try:
            if signal(None, job, WORD, WORD) == "delivered":
                self.delivered.add(job)
            return True
        except SQLAlchemyError:
            return False
