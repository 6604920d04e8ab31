"""What an application asks for: submit, cancel and replay jobs, open and seal batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from sqlalchemy import Connection, text

from pipeline.declare.states import Status
from pipeline.store.gateway.callers import Call, Statement

if TYPE_CHECKING:
    from pipeline.declare.options import Unique

# What a caller does in its own transaction, whatever connection it has.
SUBMIT = Statement(
    "SELECT pipeline.submit_many(%s, %s::jsonb[], %s::integer, %s::uuid, %s, %s::text[],"
    " coalesce(%s::timestamptz, now() + %s::interval), %s, %s, %s::interval, %s::text[],"
    " coalesce(%s::timestamptz, now() + %s::interval))"
)
CANCEL = Statement("SELECT pipeline.cancel(%s::uuid, %s)")
REPLAY = Statement("SELECT pipeline.replay(%s::uuid, NULL, NULL, %s::jsonb)")
SIGNAL = Statement("SELECT pipeline.signal(%s::uuid, %s, %s::jsonb)")
SIGNAL_BY_LINK = Statement("SELECT pipeline.signal_by_link(%s::uuid, %s, %s::jsonb, %s::bigint)")
LINK_STATE = Statement("SELECT pipeline.link_state(%s::uuid, %s, %s::bigint)")
OPEN_BATCH = Statement("SELECT pipeline.open_batch(%s, %s::jsonb)")
SEAL_BATCH = Statement("SELECT pipeline.seal_batch(%s::uuid)")

REPLAY_SEND = text("SELECT pipeline.replay(:id, :send)")
REPLAY_MANY = text("SELECT count(*) FROM pipeline.replay_many(CAST(:ids AS uuid[]), :rate)")
DISCARD_MANY = text("""SELECT count(*) FILTER (WHERE pipeline.discard(d.id, :reason))
    FROM (SELECT unnest(CAST(:ids AS uuid[])) AS id ORDER BY 1) d""")
REQUEST_SEND = text("SELECT pipeline.request_send(:job, :queue)")

FIND = text("""SELECT ids, floor FROM pipeline.find_jobs(:workflow, :phase, :status, :tag, CAST(:since AS timestamptz),
    CAST(:until AS timestamptz), :prefix, :error, :before, :limit)""")
CANCEL_MANY = text("SELECT pipeline.cancel_many(CAST(:ids AS uuid[]), :reason)")
NEWEST = UUID(int=2**128 - 1)

# Every state that is not final.
Unfinished = Literal["unfinished"]

SendAnswer = Literal[
    "accepted",
    "already_queued",
    "already_running",
    "other_phase",
    "final",
    "not_due",
    "queue_full",
    "unknown_job",
]

# What became of an event: the job waited for it; it is kept until the job waits; the job has ended, or there is none.
SignalAnswer = Literal["delivered", "kept", "final", "unknown_job"]
# What a link can do, or why it cannot: the job was told of the event already.
LinkState = Literal["open", "used", "final", "unknown_job"]


def submit_many(
    workflow: str,
    bodies: Iterable[str],
    *,
    priority: int,
    keys: Sequence[str | None] | None,
    batch: UUID | None,
    due: datetime | None,
    delay: timedelta | None,
    traceparent: str | None,
    rate_limit: str | None,
    unique: Unique | None,
    debounce: timedelta | None,
    tags: Sequence[str] | None,
    expires: timedelta | datetime | None,
) -> Call[list[UUID]]:
    """The new jobs, in the order of their bodies, each of them JSON."""
    within = expires if isinstance(expires, timedelta) else None
    values = (
        workflow,
        as_array(bodies),
        str(priority),
        _text(batch),
        traceparent,
        None if keys is None else as_array(keys),
        _text(due),
        _text(delay),
        rate_limit,
        _text(unique),
        _text(debounce),
        as_array(tags) if tags else None,
        None if within else _text(expires),
        _text(within),
    )
    return Call(SUBMIT, values, _ids)


def only(many: Call[list[UUID]]) -> Call[UUID]:
    """The one job that is submitted."""
    return Call(many.statement, many.values, _id)


def cancel(job_id: UUID, reason: str) -> Call[bool]:
    """False if the job does not exist or has already finished."""
    return Call(CANCEL, (str(job_id), reason), _truth)


def replay(job_id: UUID, body: str | None = None) -> Call[bool]:
    """With another body, which is JSON, if one is given. False if the job is neither failed nor cancelled, or another
    job that has not ended has its key."""
    return Call(REPLAY, (str(job_id), body), _truth)


def signal(job_id: UUID, event: str, body: str) -> Call[SignalAnswer]:
    """Tell a job of an event; the body is JSON."""
    return Call(SIGNAL, (str(job_id), event, body), _word)


def signal_by_link(job_id: UUID, event: str, body: str, fence: int | None) -> Call[SignalAnswer | LinkState]:
    """Tell a job of an event, once since the attempt with this fence (None: ever) began its phase."""
    return Call(SIGNAL_BY_LINK, (str(job_id), event, body, _text(fence)), _word)


def link_state(job_id: UUID, event: str, fence: int | None) -> Call[LinkState]:
    """What ``signal_by_link`` would answer; ``open``: it would tell the job."""
    return Call(LINK_STATE, (str(job_id), event, _text(fence)), _word)


def open_batch(then: str | None, body: str) -> Call[UUID]:
    """A new batch; ``body`` is the JSON of the job that is submitted when the batch is complete."""
    return Call(OPEN_BATCH, (then, body), _id)


def seal_batch(batch: UUID) -> Call[None]:
    """No more jobs will join the batch."""
    return Call(SEAL_BATCH, (str(batch),), lambda _: None)


def as_array(texts: Iterable[str | None]) -> str:
    """PostgreSQL's text for an array of any texts. psycopg takes three times as long for a list of them."""
    quoted = ("NULL" if one is None else '"' + one.replace("\\", "\\\\").replace('"', '\\"') + '"' for one in texts)
    return "{" + ",".join(quoted) + "}"


def _text(value: object) -> str | None:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.6f} seconds"
    return None if value is None else str(value)


def _id(column: list[Any]) -> UUID:
    return _ids(column)[0]


def _ids(column: list[Any]) -> list[UUID]:
    # asyncpg has a class of its own for them, which not every encoder of JSON knows.
    return [one if type(one) is UUID else UUID(str(one)) for one in column]


def _word(column: list[Any]) -> Any:
    return column[0]


def _truth(column: list[Any]) -> bool:
    return bool(column[0])


def replay_send(connection: Connection, job_id: UUID, send: int | None) -> bool:
    """As ``replay``, for the message that the job failed with; False if a later one was sent."""
    return bool(connection.execute(REPLAY_SEND, {"id": job_id, "send": send}).scalar_one())


def replay_many(connection: Connection, job_ids: Sequence[UUID], per_second: float | None) -> int:
    """How many of them were failed and started again, in this order and at this rate."""
    return int(connection.execute(REPLAY_MANY, {"ids": job_ids, "rate": per_second}).scalar_one())


def discard_many(connection: Connection, job_ids: Sequence[UUID], reason: str) -> int:
    """How many of them were failed and are cancelled now, with the reason."""
    return int(connection.execute(DISCARD_MANY, {"ids": job_ids, "reason": reason}).scalar_one())


def request_send(connection: Connection, job_id: UUID, queue: str) -> SendAnswer:
    """'accepted', or why not."""
    answer: SendAnswer = connection.execute(REQUEST_SEND, {"job": job_id, "queue": queue}).scalar_one()
    return answer


@dataclass(frozen=True)
class Where:
    """Which jobs; what is None matches every one. ``prefix``: how the id begins; ``error``: a text in the error."""

    workflow: str | None = None
    phase: str | None = None
    status: Status | Unfinished | None = None
    tag: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    prefix: str | None = None
    error: str | None = None


def find(connection: Connection, where: Where, before: UUID | None, limit: int) -> tuple[list[UUID], UUID | None]:
    """Jobs that match, newest first, older than ``before``; and where the next look begins, if there may be more."""
    ids, floor = connection.execute(FIND, {**asdict(where), "before": before or NEWEST, "limit": limit}).one()
    return list(ids), ids[-1] if len(ids) == limit else floor


def cancel_many(connection: Connection, job_ids: list[UUID], reason: str) -> int:
    """How many of them had not ended and are cancelled now."""
    return int(connection.execute(CANCEL_MANY, {"ids": job_ids, "reason": reason}).scalar_one())
