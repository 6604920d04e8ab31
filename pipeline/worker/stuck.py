"""Attempts whose thread does not come back: settled without it, and a new thread takes its place.

A thread that is blocked in a system call or in C cannot be ended from outside. Its job can go on elsewhere:
the transition is fenced, so that whatever the thread still writes through us is void.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from dramatiq.worker import WorkerThread
from sqlalchemy.exc import SQLAlchemyError

from pipeline.journey.attempt import Attempt
from pipeline.journey.checkpoint import Interrupted
from pipeline.journey.settle import settle_for_good
from pipeline.observe.instruments import count
from pipeline.store import database
from pipeline.store.gateway import session

if TYPE_CHECKING:
    from dramatiq import Worker

    from pipeline.worker.process import WorkerProcess

EXIT_CODE = 71


class StuckThreads:
    """``replaced`` is called for each thread that no longer counts as busy."""

    def __init__(self, worker: WorkerProcess, dramatiq_worker: Worker, replaced: Callable[[], None]) -> None:
        self._worker = worker
        self._dramatiq = dramatiq_worker
        self._replaced = replaced
        self._lock = threading.Lock()
        self.now = 0
        self.draining = False

    def abandon(self, attempt: Attempt) -> None:
        """Settle the claim without its thread, unless that came back in the meantime."""
        if attempt.give_up():
            threading.Thread(target=self._settle, args=(attempt,), daemon=True).start()

    def came_back(self) -> None:
        """A thread that was given up returned. Its place is taken, so it ends."""
        with self._lock:
            self.now -= 1

    def _settle(self, attempt: Attempt) -> None:
        log = self._worker.log
        log.error(
            "a thread is stuck in a call that cannot be interrupted; its job is settled without it",
            job=str(attempt.job_id),
            phase=attempt.spec.queue,
            fence=attempt.fence,
            reason=attempt.reason,
        )
        count("stuck")
        self._replace(attempt.thread)
        try:
            attempt.end_session(_terminate)
        except SQLAlchemyError as error:
            log.warning("the session of a stuck thread could not be ended", error=str(error))
        settle_for_good(self._worker, attempt, Interrupted())

    def _replace(self, thread: threading.Thread | None) -> None:
        if not isinstance(thread, WorkerThread):
            return
        with self._lock:
            self.now += 1
            drain = self.now * 2 >= self._worker.threads and not self.draining
            self.draining = self.draining or drain
        thread.stop()
        if thread in self._dramatiq.workers:
            self._dramatiq.workers.remove(thread)
        if not self.draining:
            self._dramatiq._add_worker()
        self._replaced()
        if drain:
            self._worker.log.error(
                "half of the threads are stuck: this process finishes its other jobs and exits", stuck=self.now
            )
            os.kill(os.getpid(), signal.SIGTERM)


def _terminate(pid: int) -> None:
    """End the transaction of a thread that is stuck inside its write: its locks go, and nothing of it can commit."""
    with database.engine().begin() as connection:
        session.terminate(connection, pid)
