"""Declaring a workflow: its phases in order, each on a RabbitMQ queue of its own."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import is_dataclass
from datetime import timedelta
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    cast,
    get_args,
    get_origin,
    is_typeddict,
    overload,
)
from uuid import UUID

from typing_extensions import TypeVar

from pipeline.declare.backoff import Backoff
from pipeline.declare.codec import Codec, codec_of
from pipeline.declare.job import PLAIN, Job
from pipeline.declare.options import Order
from pipeline.declare.phase import PhaseSpec, Throttle, read_rate, read_size
from pipeline.declare.registry import Around, DeclaredPhase, Hook, Work, declare_workflow
from pipeline.declare.waits.limits import Breaker, Limit, check_fields, read_shared
from pipeline.declare.waits.turns import Turns, check_field
from pipeline.handle import AsyncJobHandle, JobHandle, all_awaited, awaited, job
from pipeline.journey.submit import encode_body, submit, submit_many
from pipeline.phase import Declare, Given, Phase, Returned

if TYPE_CHECKING:
    from typing import Unpack

    from pipeline.declare.options import ManyJobs, OneJob, WorkflowOptions
    from pipeline.declare.schedules.schedule import Overlap
    from pipeline.store.gateway.callers import AsyncCaller, Caller, SyncCaller

DEFAULT_BACKOFF = Backoff()
Body = TypeVar("Body", default=dict[str, Any])
Result = TypeVar("Result", default=Any)


class Workflow(Generic[Body, Result]):
    """Phases in the order of their declaration. A job continues with the next one when a phase succeeds.

    >>> parcels = Workflow("parcels")
    >>> @parcels.phase
    ... def pack(job: Job) -> str:
    ...     return f"packed {job.body['item']}"
    >>> parcels.submit({"item": "a lamp"}).result(timeout=30)
    'packed a lamp'

    Declaring touches no broker and no database. A name is unique in a process; names are lower-case words joined by
    ``-`` (at most 60 characters).

    ``body``: the type of its jobs' bodies: a pydantic model, a dataclass or a TypedDict. A body that does not fit is
    refused when it is submitted, or fails its job at once if SQL submitted it. ``result``: the type of what the last
    phase returns, for ``submit(…).result()``; the last phase's own annotation if it is left out.
    ``order``: whether a job that began is carried through before others begin (``finish-first``), or earlier phases go
    first (``start-first``).
    ``key``: the field of the body that says whose job it is, such as ``customer``. Keys take turns: one with a million
    jobs delays another one's single job by one turn. ``per_key``: how many jobs of a key are under way at once.
    ``per_key_rate``: how many of them begin, such as ``"5/s"``. ``in_order``: one after the other, the oldest first.
    """

    @overload
    def __init__(self: Workflow[dict[str, Any], Any], name: str, **options: Unpack[WorkflowOptions]) -> None: ...

    @overload
    def __init__(
        self: Workflow[Body, Any], name: str, *, body: type[Body], **options: Unpack[WorkflowOptions]
    ) -> None: ...

    @overload
    def __init__(
        self: Workflow[dict[str, Any], Result], name: str, *, result: type[Result], **options: Unpack[WorkflowOptions]
    ) -> None: ...

    @overload
    def __init__(
        self, name: str, *, body: type[Body], result: type[Result], **options: Unpack[WorkflowOptions]
    ) -> None: ...

    def __init__(
        self,
        name: str,
        *,
        body: type | None = None,
        result: type | None = None,
        order: Order = "finish-first",
        key: str | None = None,
        per_key: int | None = None,
        per_key_rate: str | None = None,
        in_order: bool = False,
    ) -> None:
        if order not in get_args(Order):
            raise ValueError(f"workflow {name}: order is 'finish-first' or 'start-first', not {order!r}")
        if key is None and (per_key is not None or per_key_rate is not None or in_order):
            raise ValueError(f"workflow {name}: per_key, per_key_rate and in_order need a key, such as key='customer'")
        self._start_first = order == "start-first"
        module = sys._getframe(1).f_globals["__name__"]
        codec = _body(name, body)
        turns = None if key is None else _turns(name, codec, Turns(key, per_key, per_key_rate, in_order))
        self._declared = declare_workflow(name, module, codec, codec_of(result) if result else None, turns)

    @property
    def name(self) -> str:
        return self._declared.name

    @property
    def phases(self) -> list[DeclaredPhase]:
        """The phases in their order."""
        return list(self._declared.phases)

    @overload
    def phase(
        self, name: Callable[Concatenate[Job[Body], Given], Returned]
    ) -> Phase[Concatenate[Job[Body], Given], Returned]: ...

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
        memory_limit: int | str | None = None,
        max_jobs: int = 1000,
        rate: str | None = None,
        throttle: Throttle | None = None,
        shared_limit: bool = False,
        limit: Limit | str | None = None,
        breaker: Breaker | str | None = None,
    ) -> Declare[Body]: ...

    def phase(
        self,
        name: str | Callable[..., Any] | None = None,
        *,
        pool: int | None = None,
        queue_limit: int = 1000,
        max_attempts: int = 3,
        max_crashes: int = 3,
        backoff: Backoff = DEFAULT_BACKOFF,
        time_limit: float = 600.0,
        stale_after: float | None = None,
        isolated: bool = False,
        memory_limit: int | str | None = None,
        max_jobs: int = 1000,
        rate: str | None = None,
        throttle: Throttle | None = None,
        shared_limit: bool = False,
        limit: Limit | str | None = None,
        breaker: Breaker | str | None = None,
    ) -> Any:
        """Declare the next phase. Without a name, the function's own is used, with ``-`` for ``_``.

        >>> @orders.phase(max_attempts=5, backoff=exponential(10), rate="20/s", time_limit=60)
        ... async def notify(job: Job, charge: str) -> None: ...

        Its first argument is the job. Further ones are named as earlier phases, and get what those returned, of the
        type of their annotation. What it returns travels as its annotation says: plain JSON values, Decimal, datetime,
        UUID, enums, dataclasses, pydantic models, lists of them; or ``None``, a function that writes, or ``Done(…)``.

        The function is a ``def``, which runs in a thread, or an ``async def``, which runs on the event loop of its
        process: hundreds at once, as long as they wait and do not compute.

        Times are in seconds, sizes in bytes or as ``"512 MiB"``.

        ``pool``: how many jobs of the phase run at once in the whole cluster (default: no limit).
        ``queue_limit``: messages in RabbitMQ; what waits beyond it waits in PostgreSQL.
        ``max_attempts``, ``max_crashes``: the budgets of errors and of crashes.
        ``backoff``: the delay between two attempts.
        ``time_limit``: after which an attempt is ended.
        ``stale_after``: without a heartbeat for so long a job is taken from its worker (default: the setting).
        ``isolated``: run in a child process. Its memory may grow by ``memory_limit`` in a job. It is kept for the next
        jobs of the phase, with what it has loaded, and replaced after ``max_jobs`` of them (1: never reused).
        ``rate``: how many jobs are sent at most, evenly: ``"20/s"``, ``"100/min"``, ``"5/h"``; after a stall as well.
        ``throttle``: the same with bursts: at most so many jobs sent in so many seconds.
        ``shared_limit``: all jobs call the same outside system; one Retry-After pauses the phase for every worker.
        ``limit``: a rate limit by name, ``"wikidata"``, ``"shop:{shop}"`` with a field of the body, or ``Limit(…)``.
        Its jobs wait at the gate until they may call; one Retry-After pauses all phases that use the name.
        ``breaker``: a circuit breaker by name, or ``Breaker(…)``. While it is open, its jobs wait at the gate.
        """

        local = sys._getframe(1).f_locals

        if rate is not None and throttle is not None:
            raise ValueError(f"workflow {self.name}: rate and throttle exclude each other")
        shared = read_shared(limit, breaker)

        def declare(work: Work) -> Phase[..., Any]:
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
                memory_limit=read_size(memory_limit),
                max_jobs=max_jobs,
                throttle=throttle or read_rate(rate),
                shared_limit=shared_limit,
                start_first=self._start_first,
                limit=shared[0],
                breaker=shared[1],
                asynchronous=inspect.iscoroutinefunction(work),
            )
            if spec.rate_limit is not None:
                _check_limit(spec, self._declared.body)
            return Phase(self._declared.declare(spec, work, local))

        return declare(name) if callable(name) else declare

    def on_failure(self, workflow: Workflow[Any, Any], **body: Any) -> None:
        """Submit a job of this workflow when one of ours fails, in the transaction in which it does: once.

        Its body says ``job``, ``workflow``, ``phase``, ``state``, ``error``, ``body``, ``result`` and ``ended_at`` of
        the job that ended, beside what is given here. The same again if the job is replayed and fails once more.

        >>> orders.on_failure(complaints, team="night shift")
        """
        self._declared.hook(Hook("failed", workflow.name, encode_body(None, body)))

    def on_success(self, workflow: Workflow[Any, Any], **body: Any) -> None:
        """Submit a job of this workflow when one of ours has succeeded; see ``on_failure``."""
        self._declared.hook(Hook("succeeded", workflow.name, encode_body(None, body)))

    def on_cancel(self, workflow: Workflow[Any, Any], **body: Any) -> None:
        """Submit a job of this workflow when one of ours is cancelled; see ``on_failure``."""
        self._declared.hook(Hook("cancelled", workflow.name, encode_body(None, body)))

    def around(self, manager: Around) -> Around:
        """Have a context manager around every attempt of every phase: in threads, coroutines and children alike.

        What it raises is the attempt's error, before the phase and after it; what it swallows is raised all the same.
        Of several the first is the outermost.

        >>> @orders.around
        ... @contextmanager
        ... def customer_of_logs(job):
        ...     with structlog.contextvars.bound_contextvars(order=job.body["order"]):
        ...         yield
        """
        self._declared.around.append(manager)
        return manager

    def schedule(
        self,
        name: str,
        cron: str | None = None,
        *,
        every: timedelta | None = None,
        timezone: str | None = None,
        body: Body | None = None,
        overlap: Overlap = "allow",
        catch_up: int | timedelta = 1,
        priority: int = 0,
        tags: Sequence[str] = (),
    ) -> None:
        """Submit a job of this workflow at each moment of a cron expression or of an interval.

        >>> orders.schedule("weekly", "0 7 * * 1", timezone="Europe/Paris", body={"order": 17})
        >>> orders.schedule("often", every=timedelta(minutes=5), overlap="skip")

        ``pipeline migrate`` puts it in force, as it does with the phases. See ``pipeline.schedule`` for the options.
        """
        from pipeline.declare.schedules.schedule import ScheduleSpec

        encoded = encode_body(self.name, body)
        spec = ScheduleSpec(name, cron, every, timezone, encoded, overlap, catch_up, priority, tags)
        self._declared.schedule(spec)

    @overload
    def submit(
        self, body: Body | None = None, *, session: SyncCaller | None = None, **options: Unpack[OneJob]
    ) -> JobHandle[Result]: ...

    @overload
    def submit(
        self, body: Body | None = None, *, session: AsyncCaller, **options: Unpack[OneJob]
    ) -> Coroutine[Any, Any, AsyncJobHandle[Result]]: ...

    def submit(
        self, body: Body | None = None, *, session: Caller = None, **options: Unpack[OneJob]
    ) -> JobHandle[Result] | Coroutine[Any, Any, AsyncJobHandle[Result]]:
        """Submit one job of this workflow; see ``pipeline.submit``. The handle's result is there to wait for.

        >>> report = orders.submit({"order": 17}).result(timeout=30)
        """
        submitted = submit(session, self.name, cast(Any, body), **options)
        return JobHandle(submitted) if isinstance(submitted, UUID) else awaited(submitted)

    @overload
    def submit_many(
        self,
        bodies: Sequence[Body],
        *,
        session: SyncCaller | None = None,
        **options: Unpack[ManyJobs],
    ) -> list[JobHandle[Result]]: ...

    @overload
    def submit_many(
        self, bodies: Sequence[Body], *, session: AsyncCaller, **options: Unpack[ManyJobs]
    ) -> Coroutine[Any, Any, list[AsyncJobHandle[Result]]]: ...

    def submit_many(
        self, bodies: Sequence[Body], *, session: Caller = None, **options: Unpack[ManyJobs]
    ) -> list[JobHandle[Result]] | Coroutine[Any, Any, list[AsyncJobHandle[Result]]]:
        """Submit many jobs of this workflow in one round trip; see ``pipeline.submit_many``.

        >>> [handle.result(timeout=30)[:7] for handle in orders.submit_many([{"order": 1}, {"order": 2}])]
        ['charged', 'charged']
        """
        submitted = submit_many(session, self.name, cast(Any, bodies), **options)
        return [JobHandle(job) for job in submitted] if isinstance(submitted, list) else all_awaited(submitted)

    def job(self, job_id: UUID | str) -> JobHandle[Result]:
        """A job of this workflow by its id, as ``pipeline.job``, with the type of its result.

        >>> orders.job(str(orders.submit({"order": 17}))).result(timeout=30)
        'charged with ...:charge'
        """
        return job(job_id)


def _turns(workflow: str, body: Codec, turns: Turns) -> Turns:
    try:
        check_field(turns, body.schema())
    except ValueError as error:
        raise ValueError(f"workflow {workflow}: {error}") from None
    return turns


def _check_limit(spec: PhaseSpec, body: Codec) -> None:
    try:
        check_fields(spec.rate_limit or "", body.schema())
    except ValueError as error:
        raise ValueError(f"phase {spec.queue}: {error}") from None


def _body(workflow: str, body: Any) -> Codec:
    """How bodies of this type travel. A body is an object in JSON, so that a later version can add to it."""
    if body is None:
        return PLAIN
    kind = get_origin(body) or body
    if isinstance(kind, type) and (
        is_dataclass(kind) or is_typeddict(kind) or issubclass(kind, dict) or hasattr(kind, "model_validate")
    ):
        return codec_of(body)
    what = getattr(kind, "__name__", None) or f"{body!r:.100}, which is no class"
    raise TypeError(f"workflow {workflow}: body is a pydantic model, a dataclass or a TypedDict, not {what}")


def _dashed(work: Work) -> str:
    return str(getattr(work, "__name__", "phase")).strip("_").replace("_", "-")
