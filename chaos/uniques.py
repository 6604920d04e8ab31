"""Rivals that submit jobs of the same keys, one unfinished job a key; and somebody who waits for each of them."""

from __future__ import annotations

import random
import threading
import time
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from chaos.observer import Observer
from chaos.subject import Subject
from pipeline import JobCancelled, JobFailed, job, submit

KEYS, RIVALS, PAUSE = 2, 3, 0.4
# Two unfinished jobs of one key, seen at one moment.
TWICE = """SELECT array_agg(id ORDER BY id) AS jobs FROM pipeline.jobs
    WHERE workflow = %s AND idempotency_key LIKE %s AND completed_at IS NULL
    GROUP BY idempotency_key HAVING count(*) > 1"""
# How long an answer may take when the job has ended, and every server is back.
TOLD_WITHIN = 10.0


class Uniques:
    """``jobs`` has those that the rivals were answered with, and ``twice`` what must not be."""

    def __init__(self, subject: Subject, label: str, chance: random.Random, observer: Observer) -> None:
        self._subject = subject
        self._label = f"{label}:open"
        self._chance = chance
        self._observer = observer
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[UUID, threading.Thread] = {}
        self._rivals = [threading.Thread(target=self._submit, args=(n,), daemon=True) for n in range(RIVALS)]
        self._looking = threading.Thread(target=self._look, daemon=True)
        self.twice: set[tuple[UUID, UUID]] = set()

    @property
    def jobs(self) -> list[UUID]:
        with self._lock:
            return list(self._waiting)

    def start(self) -> None:
        for thread in (*self._rivals, self._looking):
            thread.start()

    def stop(self) -> None:
        """Submit no more."""
        self._stop.set()
        for thread in (*self._rivals, self._looking):
            thread.join()
        self._observer.close()

    def unanswered(self) -> list[UUID]:
        """Those for whose end somebody still waits, though all jobs have ended."""
        deadline = time.monotonic() + TOLD_WITHIN
        with self._lock:
            waiting = list(self._waiting.items())
        for _, thread in waiting:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [job_id for job_id, thread in waiting if thread.is_alive()]

    def _submit(self, rival: int) -> None:
        number = 0
        while not self._stop.wait(PAUSE):
            number += 1
            body = self._subject.body(number, self._chance)
            try:
                found = submit(None, self._subject.workflow, body, key=f"{self._label}:{number % KEYS}", unique="open")
            except SQLAlchemyError:
                # Whether it was kept is not known; the next one is answered with it if it was.
                continue
            self._wait_for(found)

    def _wait_for(self, job_id: UUID) -> None:
        with self._lock:
            if job_id in self._waiting:
                return
            self._waiting[job_id] = threading.Thread(target=self._wait, args=(job_id,), daemon=True)
            self._waiting[job_id].start()

    def _wait(self, job_id: UUID) -> None:
        try:
            job(job_id).result()
        except (JobCancelled, JobFailed):
            # Whether it should have ended so is for the books.
            pass

    def _look(self) -> None:
        while not self._stop.wait(PAUSE):
            for row in self._observer.rows(TWICE, self._subject.workflow, f"{self._label}:%"):
                self.twice.add((row["jobs"][0], row["jobs"][1]))
