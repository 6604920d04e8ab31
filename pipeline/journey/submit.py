"""Submitting and steering jobs, inside the caller's own transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.declare.errors import BadInput
from pipeline.declare.job import encode
from pipeline.declare.phase import BODY_LIMIT, PhaseSpec
from pipeline.observe.instruments import count
from pipeline.store import database
from pipeline.store.gateway import client

if TYPE_CHECKING:
    # Loaded by whoever has a session; a worker has none and starts faster without.
    from sqlalchemy.orm import Session

    Caller = Session | Connection | None


def submit(
    caller: Caller,
    workflow: str,
    body: Mapping[str, Any] | None = None,
    *,
    priority: int = 0,
    key: str | None = None,
    batch: UUID | None = None,
    due: datetime | None = None,
    traceparent: str | None = None,
    rate_limit: str | None = None,
) -> UUID:
    """Submit one job. It exists once the caller's transaction commits; without a caller, at once.

    ``priority``: 0 to 9, 9 goes first. ``key``: the same key gives the same job. ``batch``: see ``open_batch``.
    ``due``: not before. ``traceparent``: joins the caller's trace. ``rate_limit``: what it shares with other jobs
    outside, one rate and one pause.
    """
    return submit_many(
        caller,
        workflow,
        [body or {}],
        priority=priority,
        keys=None if key is None else [key],
        batch=batch,
        due=due,
        traceparent=traceparent,
        rate_limit=rate_limit,
    )[0]


def submit_many(
    caller: Caller,
    workflow: str,
    bodies: Sequence[Mapping[str, Any]],
    *,
    priority: int = 0,
    keys: Sequence[str] | None = None,
    batch: UUID | None = None,
    due: datetime | None = None,
    traceparent: str | None = None,
    rate_limit: str | None = None,
) -> list[UUID]:
    """Submit any number of jobs in one round trip, in their order."""
    if not bodies:
        return []
    encoded = as_array(_encode(body, place) for place, body in enumerate(bodies, 1))
    with readable_errors(), _connection(caller) as connection:
        return client.submit_many(
            connection,
            workflow,
            encoded,
            priority=priority,
            keys=keys,
            batch=batch,
            due=due,
            traceparent=traceparent,
            rate_limit=rate_limit,
        )


def cancel(caller: Caller, job_id: UUID, reason: str = "cancelled by request") -> bool:
    """Cancel a job. True if this call did it, False if the job does not exist or has already finished."""
    with readable_errors(), _connection(caller) as connection:
        return client.cancel(connection, job_id, reason)


def replay(caller: Caller, job_id: UUID) -> bool:
    """Start the phase of a failed job again, with fresh budgets. False if the job is not failed."""
    with readable_errors(), _connection(caller) as connection:
        return client.replay(connection, job_id)


def open_batch(caller: Caller, then: str | None = None, body: Mapping[str, Any] | None = None) -> UUID:
    """Open a batch; when it is sealed and all its jobs are final, a job of the workflow ``then`` is submitted, once."""
    encoded = _encode(body or {}, 1)
    with readable_errors(), _connection(caller) as connection:
        return client.open_batch(connection, then, encoded)


def seal_batch(caller: Caller, batch: UUID) -> None:
    """No more jobs will join the batch."""
    with readable_errors(), _connection(caller) as connection:
        client.seal_batch(connection, batch)


def _encode(body: Mapping[str, Any], place: int) -> str:
    try:
        encoded = encode(body)
    except ValueError as error:
        raise BadInput(
            f"body {place} is not valid JSON: {error}; send references (strings, numbers, lists, objects)"
        ) from None
    if len(encoded) > BODY_LIMIT:
        raise BadInput(
            f"body {place} has {len(encoded)} bytes, the limit is {BODY_LIMIT}: "
            "store the data elsewhere and send a reference to it (a path, a key, an id)"
        )
    return encoded.decode()


def as_array(texts: Iterable[str]) -> str:
    """PostgreSQL's text for an array of any texts. psycopg takes three times as long for a list of them."""
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{one}"' for one in escaped) + "}"


@contextmanager
def _connection(caller: Caller) -> Iterator[Connection]:
    if caller is None:
        # Each caller makes one statement, which is a transaction by itself: without BEGIN and COMMIT around it.
        with database.engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            yield connection
    elif isinstance(caller, Connection):
        yield caller
    else:
        yield caller.connection()


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn the errors that our SQL functions raise on purpose into BadInput with their hint."""
    try:
        yield
    except DBAPIError as error:
        cause = error.orig
        if isinstance(cause, psycopg.Error) and (cause.sqlstate or "").startswith("PL"):
            hint = f": {cause.diag.message_hint}" if cause.diag.message_hint else ""
            raise BadInput(f"{cause.diag.message_primary}{hint}") from None
        raise


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
