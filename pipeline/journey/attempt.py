"""A claim: the right to work on a job, proven by its fence."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dramatiq.middleware import Interrupt, raise_thread_exception

from pipeline.declare.phase import PhaseSpec

if TYPE_CHECKING:
    import psycopg

    from pipeline.broker.delivery import Delivery
    from pipeline.declare.job import Job

# A write that begins near the end of the time limit still gets this long.
WRITE_TIME = 5.0
CANCEL_TIMEOUT = 2.0
STEP = 0.1


class Interrupted(Interrupt):
    """Raised inside a running phase: cancelled, lost, out of time, or the worker shuts down."""


@dataclass(eq=False)
class Attempt:
    """One attempt's hold on a job, from claim to settlement.

    ``body`` and ``results`` are JSON: each attempt gets values of its own, which it may change.
    It is settled once: by the thread that runs it (``finish``), or without it if that thread is stuck (``give_up``).
    """

    spec: PhaseSpec
    job_id: UUID
    fence: int
    attempts: int
    max_attempts: int
    crashes: int
    isolated: bool
    priority: int
    body: str
    results: str
    trace_id: str
    span_id: str
    delivery: Delivery
    result: str | None = None
    reason: str | None = None
    job: Job | None = None
    stop: Callable[[], None] = lambda: None
    thread: threading.Thread | None = None
    using: psycopg.Connection[Any] | None = None
    deadline: float = field(init=False)
    _limit: float = field(init=False)
    interrupted_at: float = float("inf")
    finished: bool = False
    abandoned: bool = False
    _working: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _cancelling: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.deadline = self._limit = monotonic() + self.spec.time_limit

    def next(self, spec: PhaseSpec, delivery: Delivery, *, fence: int, max_attempts: int) -> Attempt:
        """The hold on the same job in its next phase, which begins with what this one returned."""
        return Attempt(
            spec=spec,
            job_id=self.job_id,
            fence=fence,
            attempts=0,
            max_attempts=max_attempts,
            crashes=0,
            isolated=spec.isolated,
            priority=self.priority,
            body=self.body,
            results=_with(self.results, self.spec.name, self.result),
            trace_id=self.trace_id,
            span_id=self.span_id,
            delivery=delivery,
        )

    def __enter__(self) -> Attempt:
        self.thread = threading.current_thread()
        with self._lock:
            # Told to stop before it began: while it waited for a thread.
            if self.reason is not None:
                raise Interrupted
            self._working = threading.get_ident()
        return self

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._working = None
        if self.reason is not None and not self.isolated and not isinstance(exc[1], Interrupted):
            self._absorb()

    def interrupt(self, reason: str) -> None:
        """Tell the attempt to stop: 'cancelled', 'lost', 'time_limit' or 'shutdown'. The first reason stands."""
        with self._lock:
            if self.reason is not None or self.finished:
                return
            self.reason, self.interrupted_at = reason, monotonic()
            if self.job is not None and reason in ("cancelled", "lost"):
                self.job.lost = reason
            if self.isolated:
                self.stop()
            elif self._working is not None:
                raise_thread_exception(self._working, Interrupted)  # type: ignore[no-untyped-call]

    def finish(self) -> bool:
        """The attempt is over, and its thread settles it. False if that was done without it: nothing of it counts."""
        with self._lock:
            self.finished = not self.abandoned
            return self.finished

    def give_up(self) -> bool:
        """Settle it without its thread, which does not come back. False if it did after all."""
        with self._lock:
            if self.finished or self.abandoned:
                return False
            self.abandoned = self.delivery.abandoned = True
            return True

    @contextmanager
    def writing(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """What is written over ``connection`` meanwhile is cancelled on the server if the attempt must stop."""
        self.using = connection
        try:
            yield
        finally:
            # The connection goes back to the pool: a cancel that is on its way must not hit its next user.
            with self._cancelling:
                self.using = None

    def cancel_write(self) -> None:
        """End on the server what is being written, so that its thread comes back from it."""
        with self._cancelling:
            if self.using is not None:
                self.using.cancel_safe(timeout=CANCEL_TIMEOUT)

    def end_session(self, terminate: Callable[[int], None]) -> None:
        """``terminate`` the session over which a write is under way, if there is one, while it is this attempt's."""
        with self._cancelling:
            if self.using is not None and not self.using.closed:
                terminate(self.using.info.backend_pid)

    def begin_write(self) -> None:
        """The work is done; its write is bounded by what is left of the time limit, or by a little more."""
        self.thread, self.deadline = threading.current_thread(), max(self._limit, monotonic() + WRITE_TIME)

    def detach(self) -> None:
        """The work is done and its thread is free; the settlement waits elsewhere, and its time is not limited."""
        self.thread, self.deadline = None, float("inf")

    def pause(self, seconds: float) -> None:
        """Sleep, unless the attempt is told to stop: then raise Interrupted."""
        until = monotonic() + seconds
        while self.reason is None and (left := until - monotonic()) > 0:
            sleep(min(left, STEP))
        if self.reason is not None:
            raise Interrupted

    def _absorb(self) -> None:
        # The exception may still be on its way to this thread; it must not hit the next job.
        try:
            for _ in range(1000):
                pass
        except Interrupted:
            pass


def _with(results: str, phase: str, result: str | None) -> str:
    """The JSON object with one more member; a later one of the same name counts."""
    if result is None:
        return results
    separator = "" if results == "{}" else ","
    return f'{results[:-1]}{separator}"{phase}":{result}}}'
