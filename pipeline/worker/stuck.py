"""Attempts whose thread does not come back: settled without it, and a new thread takes its place.

A thread that is blocked in a system call or in C cannot be ended from outside. Its job can go on elsewhere:
the transition is fenced, so that whatever the thread still writes through us is void.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from dramatiq.worker import WorkerThread
from sqlalchemy.exc import SQLAlchemyError

from pipeline.journey.attempt import Attempt
from pipeline.journey.checkpoint import Interrupted
from pipeline.journey.settle import settle_for_good
from pipeline.observe.instruments import count
from pipeline.observe.tracebacks import of_frame
from pipeline.store import database
from pipeline.store.gateway import session
from pipeline.worker.event_loop import Runner

if TYPE_CHECKING:
    from dramatiq import Worker

    from pipeline.broker.inbound import Delivery
    from pipeline.worker.process import WorkerProcess

EXIT_CODE = 71
# Event loops that one process may leave behind.
MOST_LOOPS = 3


class StuckThreads:
    """``replaced`` is called for each thread that no longer counts as busy."""

    def __init__(self, worker: WorkerProcess, dramatiq_worker: Worker, replaced: Callable[[], None]) -> None:
        self._worker = worker
        self._dramatiq = dramatiq_worker
        self._replaced = replaced
        self._lock = threading.Lock()
        self._stuck: dict[Delivery, str] = {}
        self._loops = 0
        self.draining = False

    def abandon(self, attempt: Attempt) -> None:
        """Settle the claim without its thread, unless that came back in the meantime."""
        if not attempt.give_up():
            return
        if isinstance(attempt.runner, Runner) and self._worker.loop is not None:
            # There may be thousands of them.
            self._worker.loop.call(self._settle, attempt)
        else:
            threading.Thread(target=self._settle, args=(attempt,), daemon=True).start()

    @property
    def now(self) -> int:
        """How many there are: threads, and coroutines that did not end when they were cancelled."""
        return len(self._stuck)

    def jobs(self) -> list[str]:
        """The jobs that they were stuck in, up to a hundred."""
        return list(self._stuck.values())[:100]

    def came_back(self, delivery: Delivery) -> None:
        """What was given up ended after all. A thread's place is taken, so it ends."""
        with self._lock:
            self._stuck.pop(delivery, None)

    def _settle(self, attempt: Attempt) -> None:
        log = self._worker.log
        coroutine = isinstance(attempt.runner, Runner)
        interrupted = Interrupted().with_traceback(of_frame(_frame(attempt.runner)))
        log.error(
            "a coroutine did not end when it was cancelled; its job is settled without it"
            if coroutine
            else "a thread is stuck in a call that cannot be interrupted; its job is settled without it",
            job=str(attempt.job_id),
            phase=attempt.spec.queue,
            fence=attempt.fence,
            reason=attempt.reason,
        )
        count("stuck")
        if isinstance(attempt.runner, Runner):
            self._leave(attempt)
        elif isinstance(attempt.runner, WorkerThread):
            self._replace(attempt.runner, attempt.delivery, str(attempt.job_id))
        try:
            attempt.end_session(_terminate)
        except SQLAlchemyError as error:
            log.warning("the session of a stuck thread could not be ended", error=str(error))
        settle_for_good(self._worker, attempt, interrupted)

    def _replace(self, thread: WorkerThread, delivery: Delivery, job: str) -> None:
        with self._lock:
            self._stuck[delivery] = job
        thread.stop()
        if thread in self._dramatiq.workers:
            self._dramatiq.workers.remove(thread)
        drain = self.now * 2 >= self._worker.threads and not self.draining
        if not drain and not self.draining:
            self._dramatiq._add_worker()
        self._replaced()
        if drain:
            self._drain("half of the threads are stuck: this process finishes its other jobs and exits")

    def _leave(self, attempt: Attempt) -> None:
        """A coroutine that does not end takes no thread with it, unless it blocks the event loop."""
        assert self._worker.loop is not None
        with self._lock:
            self._stuck[attempt.delivery] = str(attempt.job_id)
        if self._worker.loop.abandoned(attempt):
            self._loops += 1
            if self._loops >= MOST_LOOPS and not self.draining:
                self._drain("coroutines block the event loop again and again: this process finishes and exits")

    def _drain(self, why: str) -> None:
        with self._lock:
            if self.draining:
                return
            self.draining = True
        self._worker.log.error(why, stuck=self.now)
        os.kill(os.getpid(), signal.SIGTERM)


def _frame(runner: object) -> FrameType | None:
    """Where what runs the attempt is at this moment."""
    thread = runner.thread if isinstance(runner, Runner) else runner
    ident = thread.ident if isinstance(thread, threading.Thread) else None
    return None if ident is None else sys._current_frames().get(ident)


def _terminate(pid: int) -> None:
    """End the transaction of a thread that is stuck inside its write: its locks go, and nothing of it can commit."""
    with database.engine().begin() as connection:
        session.terminate(connection, pid)
