"""Submitting and steering jobs, inside the caller's own transaction."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload
from uuid import UUID

from pipeline.declare.codec import DoesNotFit
from pipeline.declare.errors import BadInput
from pipeline.declare.job import PLAIN
from pipeline.declare.lossless import without_nul
from pipeline.declare.options import Unique, check
from pipeline.declare.phase import BODY_LIMIT, PhaseSpec
from pipeline.declare.registry import BadBody, body_codec, check_limits
from pipeline.observe.instruments import count
from pipeline.store import database
from pipeline.store.gateway import client
from pipeline.store.gateway.callers import known, run

if TYPE_CHECKING:
    from typing import TypeAlias, Unpack

    from pydantic import BaseModel

    from pipeline.declare.options import ManyJobs, OneJob
    from pipeline.store.gateway.callers import AsyncCaller, Caller, SyncCaller

    # An object in JSON, or what its workflow says that a body is.
    Body: TypeAlias = Mapping[str, Any] | BaseModel | "Dataclass"


class Dataclass(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@overload
def submit(caller: SyncCaller | None, workflow: str, body: Body | None = None, **options: Unpack[OneJob]) -> UUID: ...


@overload
def submit(
    caller: AsyncCaller, workflow: str, body: Body | None = None, **options: Unpack[OneJob]
) -> Coroutine[Any, Any, UUID]: ...


def submit(
    caller: Caller,
    workflow: str,
    body: Body | None = None,
    *,
    priority: int = 0,
    key: str | None = None,
    batch: UUID | None = None,
    due: datetime | None = None,
    delay: timedelta | None = None,
    traceparent: str | None = None,
    rate_limit: str | None = None,
    unique: Unique | None = None,
    debounce: timedelta | None = None,
    tags: Sequence[str] | None = None,
    expires: timedelta | datetime | None = None,
) -> UUID | Coroutine[Any, Any, UUID]:
    """Submit one job. It exists once the caller's transaction commits; without a caller, at once.

    >>> with Session(engine()) as session, session.begin():
    ...     job_id = submit(session, "orders", {"order": 17}, priority=5, unique="open")

    ``caller``: a session or connection of SQLAlchemy, psycopg, asyncpg or Django; what is async is awaited.
    ``priority``: 0 to 9, 9 goes first. ``key``: the same key gives the same job. ``batch``: see ``open_batch``.
    ``due``: not before. ``delay``: not before so long after now. ``traceparent``: joins the caller's trace.
    ``rate_limit``: what it shares with other jobs outside, one rate and one pause.

    ``unique``: how long the key, or without one the body, stays the job's. ``"open"``: until it has ended; a further
    submit is answered with it. A ``timedelta``: for so long. ``"replace"``: as open, but while the job waits unsent a
    further submit gives it its own body, priority, tags and times, and once it was sent, a new job gets the key.
    ``debounce``: as replace, and the job is due so long after the last submit.
    ``tags``: up to 20 words to find jobs by. ``expires``: a job that has not begun by then fails and never starts.
    """
    keys = None if key is None else [key]
    check(
        jobs=1,
        priority=priority,
        keys=keys,
        unique=unique,
        debounce=debounce,
        due=due,
        delay=delay,
        tags=tags,
        expires=expires,
    )
    call = client.submit_many(
        workflow,
        [encode_body(workflow, body)],
        priority=priority,
        keys=keys,
        batch=batch,
        due=due,
        delay=delay,
        traceparent=traceparent,
        rate_limit=rate_limit,
        unique=unique,
        debounce=debounce,
        tags=tags,
        expires=expires,
    )
    return run(caller, client.only(call))


@overload
def submit_many(
    caller: SyncCaller | None, workflow: str, bodies: Sequence[Body], **options: Unpack[ManyJobs]
) -> list[UUID]: ...


@overload
def submit_many(
    caller: AsyncCaller, workflow: str, bodies: Sequence[Body], **options: Unpack[ManyJobs]
) -> Coroutine[Any, Any, list[UUID]]: ...


def submit_many(
    caller: Caller,
    workflow: str,
    bodies: Sequence[Body],
    *,
    priority: int = 0,
    keys: Sequence[str | None] | None = None,
    batch: UUID | None = None,
    due: datetime | None = None,
    delay: timedelta | None = None,
    traceparent: str | None = None,
    rate_limit: str | None = None,
    unique: Unique | None = None,
    debounce: timedelta | None = None,
    tags: Sequence[str] | None = None,
    expires: timedelta | datetime | None = None,
) -> list[UUID] | Coroutine[Any, Any, list[UUID]]:
    """Submit any number of jobs in one round trip, in their order.

    >>> with Session(engine()) as session, session.begin():
    ...     ids = submit_many(session, "orders", [{"order": n} for n in range(1000)], tags=["import"])
    >>> len(ids)
    1000
    """
    if not bodies:
        return known(caller, [])
    check(
        jobs=len(bodies),
        priority=priority,
        keys=keys,
        unique=unique,
        debounce=debounce,
        due=due,
        delay=delay,
        tags=tags,
        expires=expires,
    )
    call = client.submit_many(
        workflow,
        [encode_body(workflow, body, f"body {place}") for place, body in enumerate(bodies, 1)],
        priority=priority,
        keys=keys,
        batch=batch,
        due=due,
        delay=delay,
        traceparent=traceparent,
        rate_limit=rate_limit,
        unique=unique,
        debounce=debounce,
        tags=tags,
        expires=expires,
    )
    return run(caller, call)


@overload
def cancel(caller: SyncCaller | None, job_id: UUID, reason: str = ...) -> bool: ...


@overload
def cancel(caller: AsyncCaller, job_id: UUID, reason: str = ...) -> Coroutine[Any, Any, bool]: ...


def cancel(caller: Caller, job_id: UUID, reason: str = "cancelled by request") -> bool | Coroutine[Any, Any, bool]:
    """Cancel a job. True if this call did it, False if the job does not exist or has already finished.

    >>> job_id = submit(None, "orders", {"order": 17})
    >>> cancel(None, job_id, "ordered twice"), cancel(None, job_id)
    (True, False)
    """
    return run(caller, client.cancel(job_id, reason))


@overload
def replay(caller: SyncCaller | None, job_id: UUID) -> bool: ...


@overload
def replay(caller: AsyncCaller, job_id: UUID) -> Coroutine[Any, Any, bool]: ...


def replay(caller: Caller, job_id: UUID) -> bool | Coroutine[Any, Any, bool]:
    """Start the phase of a failed or cancelled job again, with fresh budgets. False if the job is neither.

    >>> job_id = submit(None, "orders", {"order": 17})
    >>> cancel(None, job_id), replay(None, job_id)
    (True, True)

    Or if its key was free since it ended (``unique``) and another job that has not ended has it now.
    """
    return run(caller, client.replay(job_id))


@overload
def signal(caller: SyncCaller | None, job_id: UUID, event: str, body: object = None) -> client.SignalAnswer: ...


@overload
def signal(
    caller: AsyncCaller, job_id: UUID, event: str, body: object = None
) -> Coroutine[Any, Any, client.SignalAnswer]: ...


def signal(
    caller: Caller, job_id: UUID, event: str, body: object = None
) -> client.SignalAnswer | Coroutine[Any, Any, client.SignalAnswer]:
    """Tell a job of an event, in the caller's transaction; see ``job.wait_for``.

    >>> job_id = submit(None, "orders", {"order": 17})
    >>> signal(None, job_id, "approved", {"by": "Ada"})
    'kept'

    ``delivered``: the job waited for it and continues, with the body as the result of the phase that waited. ``kept``:
    the job will find it when it waits for it; also if it came after the wait's time was over. ``final``: the job has
    ended. ``unknown_job``: there is none. BadInput if the body cannot be stored as JSON.
    """
    try:
        encoded = without_nul(PLAIN.encode(body))
    except ValueError as error:
        raise BadInput(f"the body of event {event!r} cannot be stored as JSON: {error}") from None
    return run(caller, client.signal(job_id, event, encoded.decode()))


@overload
def open_batch(caller: SyncCaller | None, then: str | None = None, body: Mapping[str, Any] | None = None) -> UUID: ...


@overload
def open_batch(
    caller: AsyncCaller, then: str | None = None, body: Mapping[str, Any] | None = None
) -> Coroutine[Any, Any, UUID]: ...


def open_batch(
    caller: Caller, then: str | None = None, body: Mapping[str, Any] | None = None
) -> UUID | Coroutine[Any, Any, UUID]:
    """Open a batch; when it is sealed and all its jobs are final, a job of the workflow ``then`` is submitted, once.

    >>> batch = open_batch(None, then="complaints", body={"about": "these orders"})
    >>> ids = submit_many(None, "orders", [{"order": 1}, {"order": 2}], batch=batch)
    >>> seal_batch(None, batch)
    >>> run.drain()
    >>> len(run.jobs("complaints"))
    1
    """
    return run(caller, client.open_batch(then, encode_body(None, body)))


@overload
def seal_batch(caller: SyncCaller | None, batch: UUID) -> None: ...


@overload
def seal_batch(caller: AsyncCaller, batch: UUID) -> Coroutine[Any, Any, None]: ...


def seal_batch(caller: Caller, batch: UUID) -> Coroutine[Any, Any, None] | None:
    """No more jobs will join the batch.

    >>> seal_batch(None, open_batch(None))
    """
    return run(caller, client.seal_batch(batch))


def encode_body(workflow: str | None, body: object, which: str = "the body") -> str:
    """The JSON of a body. BadInput if it does not fit its workflow, is not JSON or is too large."""
    codec = PLAIN if workflow is None else body_codec(workflow)
    try:
        encoded = without_nul(codec.encode({} if body is None else body))
    except DoesNotFit as error:
        assert workflow is not None
        raise BadBody(workflow, error, which) from None
    except ValueError as error:
        raise BadInput(
            f"{which} cannot be stored as JSON: {error}; send references (strings, numbers, lists, objects)"
        ) from None
    if len(encoded) > BODY_LIMIT:
        raise BadInput(
            f"{which} has {len(encoded)} bytes, the limit is {BODY_LIMIT}: "
            "store the data elsewhere and send a reference to it (a path, a key, an id)"
        )
    if workflow is not None:
        check_limits(workflow, encoded)
    return encoded.decode()


REASONS: dict[client.SendAnswer, str] = {
    "accepted": "the job is on its way to its queue",
    "already_queued": "a message for this job is in the queue or about to be",
    "already_running": "a worker holds this job",
    "other_phase": "the job is in another phase",
    "final": "the job has ended; use replay to run a failed one again",
    "not_due": "the job waits for its time (backoff, snoozed or throttled)",
    "queue_full": "the queue or the pool is full; the job waits in PostgreSQL and is sent when there is room",
    "unknown_job": "there is no such job",
}


@dataclass(frozen=True)
class Requested:
    """What became of the request. True in a condition when the job was accepted."""

    job_id: str
    reason: client.SendAnswer

    def __bool__(self) -> bool:
        return self.reason == "accepted"

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.reason} ({REASONS[self.reason]})"


def request_send(spec: PhaseSpec, job_id: UUID | str) -> Requested:
    """Ask for ``job_id`` to be sent to the phase."""
    try:
        known = UUID(str(job_id))
    except ValueError:
        return _refuse(str(job_id), "unknown_job")
    with database.engine().begin() as connection:
        reason = client.request_send(connection, known, spec.queue)
    return Requested(str(known), reason) if reason == "accepted" else _refuse(str(known), reason)


def _refuse(job_id: str, reason: client.SendAnswer) -> Requested:
    count(f"refused.{reason}")
    return Requested(job_id, reason)
