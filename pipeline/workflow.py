"""Declaring a workflow: its phases in order, each on a RabbitMQ queue of its own."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints, overload
from uuid import UUID

from pipeline.declare.backoff import Backoff
from pipeline.declare.job import Job
from pipeline.declare.phase import PhaseSpec, Throttle
from pipeline.declare.registry import DeclaredPhase, Work, declare_workflow
from pipeline.journey.submit import Requested, request_send, submit, submit_many

if TYPE_CHECKING:
    from typing import Unpack

    from pipeline.journey.submit import ManyJobs, OneJob
    from pipeline.store.gateway.callers import AsyncCaller, Caller, SyncCaller

DEFAULT_BACKOFF = Backoff()
Order = Literal["finish-first", "start-first"]
# Results are objects, so that a later phase can be given more without breaking the earlier ones.
UNSUPPORTED = (list, tuple, set, frozenset, str, bytes, int, float, bool)


class Phase:
    """One phase of a workflow. It stays the function that it decorates: call it with a ``Job`` to test it."""

    __name__: str

    def __init__(self, declared: DeclaredPhase) -> None:
        update_wrapper(self, declared.work)
        self.spec = declared.spec
        self.work = declared.work

    def __call__(self, job: Job) -> Any:
        return self.work(job)

    def __repr__(self) -> str:
        return f"<phase {self.spec.queue}>"

    def send(self, job_id: UUID | str) -> Requested:
        """Ask for an existing job to be sent: the same gate, the same outbox. The answer says why not.

        >>> check_stock.send(job_id)
        """
        return request_send(self.spec, job_id)


class Workflow:
    """Phases in the order of their declaration. A job continues with the next one when a phase succeeds.

    >>> orders = Workflow("orders")
    >>> @orders.phase
    ... def check_stock(job: Job) -> dict[str, int]:
    ...     return {"left": 3}

    Declaring touches no broker and no database. A name is unique in a process; names are lower-case words joined by
    ``-`` (at most 60 characters).

    ``order``: whether a job that began is carried through before others begin (``finish-first``), or earlier phases go
    first (``start-first``).
    """

    def __init__(self, name: str, *, order: Order = "finish-first") -> None:
        if order not in get_args(Order):
            raise ValueError(f"workflow {name}: order is 'finish-first' or 'start-first', not {order!r}")
        self._start_first = order == "start-first"
        self._declared = declare_workflow(name, sys._getframe(1).f_globals["__name__"])

    @property
    def name(self) -> str:
        return self._declared.name

    @property
    def phases(self) -> list[DeclaredPhase]:
        """The phases in their order."""
        return list(self._declared.phases)

    @overload
    def phase(self, name: Work) -> Phase: ...

    @overload
    def phase(
        self,
        name: str | None = None,
        *,
        pool: int | None = None,
        queue_limit: int = 1000,
        max_attempts: int = 3,
        max_crashes: int = 3,
        backoff: Backoff = DEFAULT_BACKOFF,
        time_limit: float = 600.0,
        stale_after: float | None = None,
        isolated: bool = False,
        memory_limit: int | None = None,
        max_jobs: int = 1000,
        throttle: Throttle | None = None,
        shared_limit: bool = False,
    ) -> Callable[[Work], Phase]: ...

    def phase(
        self,
        name: str | Work | None = None,
        *,
        pool: int | None = None,
        queue_limit: int = 1000,
        max_attempts: int = 3,
        max_crashes: int = 3,
        backoff: Backoff = DEFAULT_BACKOFF,
        time_limit: float = 600.0,
        stale_after: float | None = None,
        isolated: bool = False,
        memory_limit: int | None = None,
        max_jobs: int = 1000,
        throttle: Throttle | None = None,
        shared_limit: bool = False,
    ) -> Phase | Callable[[Work], Phase]:
        """Declare the next phase. Without a name, the function's own is used, with ``-`` for ``_``.

        The function is a ``def``, which runs in a thread, or an ``async def``, which runs on the event loop of its
        process: hundreds at once, as long as they wait and do not compute.

        Times are in seconds, sizes in bytes.

        ``pool``: how many jobs of the phase run at once in the whole cluster (default: no limit).
        ``queue_limit``: messages in RabbitMQ; what waits beyond it waits in PostgreSQL.
        ``max_attempts``, ``max_crashes``: the budgets of errors and of crashes.
        ``backoff``: the delay between two attempts.
        ``time_limit``: after which an attempt is ended.
        ``stale_after``: without a heartbeat for so long a job is taken from its worker (default: the setting).
        ``isolated``: run in a child process. Its memory may grow by ``memory_limit`` in a job. It is kept for the next
        jobs of the phase, with what it has loaded, and replaced after ``max_jobs`` of them (1: never reused).
        ``throttle``: at most so many jobs sent in so many seconds.
        ``shared_limit``: all jobs call the same outside system; one Retry-After pauses the phase for every worker.
        """

        def declare(work: Work) -> Phase:
            chosen = name if isinstance(name, str) else _dashed(work)
            spec = PhaseSpec(
                self.name,
                chosen,
                pool=pool,
                queue_limit=queue_limit,
                max_attempts=max_attempts,
                max_crashes=max_crashes,
                backoff=backoff,
                time_limit=time_limit,
                stale_after=stale_after,
                isolated=isolated,
                memory_limit=memory_limit,
                max_jobs=max_jobs,
                throttle=throttle,
                shared_limit=shared_limit,
                start_first=self._start_first,
                asynchronous=inspect.iscoroutinefunction(work),
            )
            return self._declare(work, spec)

        return declare(name) if callable(name) else declare

    @overload
    def submit(
        self, body: Mapping[str, Any] | None = None, *, session: SyncCaller | None = None, **options: Unpack[OneJob]
    ) -> UUID: ...

    @overload
    def submit(
        self, body: Mapping[str, Any] | None = None, *, session: AsyncCaller, **options: Unpack[OneJob]
    ) -> Coroutine[Any, Any, UUID]: ...

    def submit(
        self,
        body: Mapping[str, Any] | None = None,
        *,
        session: Caller = None,
        priority: int = 0,
        key: str | None = None,
        batch: UUID | None = None,
        due: datetime | None = None,
        traceparent: str | None = None,
        rate_limit: str | None = None,
    ) -> UUID | Coroutine[Any, Any, UUID]:
        """Submit one job of this workflow; see ``pipeline.submit``."""
        return submit(
            session,
            self.name,
            body,
            priority=priority,
            key=key,
            batch=batch,
            due=due,
            traceparent=traceparent,
            rate_limit=rate_limit,
        )

    @overload
    def submit_many(
        self,
        bodies: Sequence[Mapping[str, Any]],
        *,
        session: SyncCaller | None = None,
        **options: Unpack[ManyJobs],
    ) -> list[UUID]: ...

    @overload
    def submit_many(
        self, bodies: Sequence[Mapping[str, Any]], *, session: AsyncCaller, **options: Unpack[ManyJobs]
    ) -> Coroutine[Any, Any, list[UUID]]: ...

    def submit_many(
        self,
        bodies: Sequence[Mapping[str, Any]],
        *,
        session: Caller = None,
        priority: int = 0,
        keys: Sequence[str] | None = None,
        batch: UUID | None = None,
        due: datetime | None = None,
        traceparent: str | None = None,
        rate_limit: str | None = None,
    ) -> list[UUID] | Coroutine[Any, Any, list[UUID]]:
        """Submit many jobs of this workflow in one round trip; see ``pipeline.submit_many``."""
        return submit_many(
            session,
            self.name,
            bodies,
            priority=priority,
            keys=keys,
            batch=batch,
            due=due,
            traceparent=traceparent,
            rate_limit=rate_limit,
        )

    def _declare(self, work: Work, spec: PhaseSpec) -> Phase:
        returned = _annotated_return(work)
        if returned in UNSUPPORTED:
            raise TypeError(
                f"phase {spec.queue} is annotated to return {returned.__name__}: a phase returns None, a dict, a "
                "function that writes, or Done(...)"
            )
        if any(phase.spec.name == spec.name for phase in self._declared.phases):
            raise ValueError(f"workflow {self.name} already has a phase named {spec.name!r}")
        declared = DeclaredPhase(spec, work)
        self._declared.phases.append(declared)
        return Phase(declared)


def _annotated_return(work: Work) -> Any:
    """The class of what the function says it returns; None if it says nothing, or nothing that can be read now."""
    try:
        hint = get_type_hints(work).get("return")
    except (NameError, TypeError, AttributeError):
        return None
    return get_origin(hint) or hint


def _dashed(work: Work) -> str:
    return str(getattr(work, "__name__", "phase")).strip("_").replace("_", "-")
