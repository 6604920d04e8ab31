"""A claim: the right to work on a job, proven by its fence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dramatiq.middleware import Interrupt, raise_thread_exception

from pipeline.rules.phase import PhaseSpec

if TYPE_CHECKING:
    from pipeline.broker.delivery import Delivery
    from pipeline.flow.job import Job


class Interrupted(Interrupt):
    """Raised inside a running phase: cancelled, lost, out of time, or the worker shuts down."""


@dataclass(eq=False)
class Claim:
    """One attempt's hold on a job, from claim to settlement."""

    spec: PhaseSpec
    job_id: UUID
    fence: int
    attempts: int
    max_attempts: int
    crashes: int
    isolated: bool
    priority: int
    body: dict[str, Any]
    results: dict[str, Any]
    trace_id: str
    span_id: str
    delivery: Delivery
    reason: str | None = None
    job: Job | None = None
    stop: Callable[[], None] = lambda: None
    deadline: float = field(init=False)
    _thread: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.deadline = monotonic() + self.spec.time_limit

    def __enter__(self) -> Claim:
        with self._lock:
            self._thread = threading.get_ident()
        return self

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._thread = None
        if self.reason is not None and not self.isolated and not isinstance(exc[1], Interrupted):
            self._absorb()

    def interrupt(self, reason: str) -> None:
        """Tell the attempt to stop: 'cancelled', 'lost', 'time_limit' or 'shutdown'. The first reason stands."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            if self.job is not None and reason in ("cancelled", "lost"):
                self.job.lost = reason
            if self.isolated:
                self.stop()
            elif self._thread is not None:
                raise_thread_exception(self._thread, Interrupted)  # type: ignore[no-untyped-call]

    def _absorb(self) -> None:
        # The exception may still be on its way to this thread; it must not hit the next job.
        try:
            for _ in range(1000):
                pass
        except Interrupted:
            pass
