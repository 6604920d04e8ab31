"""Deadlines: an attempt that is out of time, cancelled or must make way for a shutdown is told, and then ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

import psycopg

from pipeline.journey.attempt import Attempt, Held
from pipeline.observe import logs
from pipeline.worker.essential import essential_thread

log = logs.get("pipeline.worker")

# How long an attempt that was told to stop may take. An exception reaches a Python thread at its next bytecode, and
# nothing reaches one that is blocked in a system call or in C.
GRACE = 2.0
NEVER = float("inf")
# Between two looks when nobody's time is over before that: a job that begins need not wake the watch then.
LONGEST = 60.0


class Watch:
    """Tells attempts whose time is over, and calls ``abandon`` for those that do not end within the grace."""

    def __init__(self, held: Held, abandon: Callable[[Attempt], None]) -> None:
        self._held = held
        held.wake = self.wake
        self._abandon = abandon
        self._changed = threading.Condition()
        self._woken = False
        self._stopping = False
        self._thread = essential_thread("pipeline-watch", self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        """Somebody was told to stop, or is out of time before all others."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def _run(self) -> None:
        while not self._stopping:
            for attempt in self._held.all():
                self._look(attempt, monotonic())
            # Whoever is added from here on wakes us, or is among those that are looked at next.
            self._held.next_look = NEVER
            self._held.next_look = until = min([monotonic() + LONGEST, *map(_next_moment, self._held.all())])
            with self._changed:
                self._changed.wait_for(lambda: self._woken, max(until - monotonic(), 0.0))
                self._woken = False

    def _look(self, attempt: Attempt, now: float) -> None:
        if attempt.deadline <= now:
            attempt.interrupt("time_limit")
        if attempt.reason is not None and not (attempt.finished or attempt.abandoned):
            if attempt.using is not None:
                threading.Thread(target=_cancel, args=(attempt,), daemon=True).start()
            if attempt.runner is not None and attempt.interrupted_at + GRACE <= now:
                self._abandon(attempt)


def _next_moment(attempt: Attempt) -> float:
    if attempt.finished or attempt.abandoned:
        return NEVER
    if attempt.reason is None:
        return attempt.deadline
    # One that nobody has begun learns of it when somebody does.
    return NEVER if attempt.runner is None else attempt.interrupted_at + GRACE


def _cancel(attempt: Attempt) -> None:
    try:
        attempt.cancel_write()
    except psycopg.Error as error:
        log.warning("a write could not be cancelled", job=str(attempt.job_id), error=str(error).strip())
