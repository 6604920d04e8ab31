"""The message on the wire: an envelope inside a Dramatiq message, composed here and validated when it comes in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from dramatiq import Message
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pipeline.declare.errors import BadInput
from pipeline.declare.job import decode
from pipeline.declare.phase import PhaseSpec

VERSION = "1.0"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _moment(value: str) -> str:
    """A moment with its zone, in UTC: PostgreSQL stores it, and knows fewer ways to write one than Python."""
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("a moment needs its time zone")
    try:
        return moment.astimezone(UTC).isoformat()
    except OverflowError:
        raise ValueError("a moment must lie between the years 1 and 9999") from None


class Header(_Strict):
    """Which job, which phase, which send."""

    job_id: UUID
    type: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,60}\.[a-z0-9-]{1,60}$")]
    version: Literal["1.0"]
    created_at: Annotated[str, Field(max_length=40), AfterValidator(_moment)]
    attempt: Annotated[int, Field(ge=1, strict=True)]
    max_attempts: Annotated[int, Field(ge=1, strict=True)]
    send: Annotated[int, Field(ge=1, lt=2**63, strict=True)]


class Tracing(_Strict):
    """W3C trace context ids."""

    trace_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    span_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]


class Envelope(_Strict):
    """Everything a worker needs to claim a job. The body holds references only."""

    header: Header
    body: dict[str, Any]
    tracing: Tracing


class InvalidEnvelope(BadInput):
    """The message is refused; the job it names is not touched."""


def parse(raw: object) -> Envelope:
    """The envelope in ``raw``, or InvalidEnvelope saying what is wrong with it."""
    try:
        return Envelope.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "envelope"
        raise InvalidEnvelope(f"invalid envelope: {where}: {first['msg']}") from None


def build(
    *,
    job_id: object,
    queue: str,
    send: int,
    attempt: int,
    max_attempts: int,
    created_at: str,
    body: dict[str, Any],
    trace_id: str,
    span_id: str,
) -> dict[str, Any]:
    """The envelope as plain data, ready to be encoded. The caller's values come from PostgreSQL."""
    return {
        "header": {
            "job_id": str(job_id),
            "type": queue,
            "version": VERSION,
            "created_at": created_at,
            "attempt": attempt,
            "max_attempts": max_attempts,
            "send": send,
        },
        "body": body,
        "tracing": {"trace_id": trace_id, "span_id": span_id},
    }


def compose(
    *,
    job_id: UUID,
    queue: str,
    actor: str,
    send: int,
    attempt: int,
    max_attempts: int,
    sent_at: datetime,
    priority: int,
    body: str,
    trace_id: str,
    span_id: str,
) -> Message[Any]:
    """The message. ``sent_at`` is PostgreSQL's clock: the claim stores it in the history. ``body`` is JSON."""
    job = str(job_id)
    envelope = build(
        job_id=job,
        queue=queue,
        send=send,
        attempt=attempt,
        max_attempts=max_attempts,
        created_at=sent_at.isoformat(),
        body=decode(body),
        trace_id=trace_id,
        span_id=span_id,
    )
    return Message(
        queue_name=queue,
        actor_name=actor,
        args=(envelope,),
        kwargs={},
        options={"broker_priority": priority} if priority else {},
        message_id=f"{job}:{send}",
        message_timestamp=int(sent_at.timestamp() * 1000),
    )


def encode(message: Message[Any]) -> bytes:
    """The bytes on the wire."""
    return orjson.dumps(message)


@dataclass(frozen=True, slots=True)
class MessageRef:
    """``send`` is None for a bare job id from an app: it is adopted if its job waits unsent."""

    job_id: UUID
    send: int | None
    sent_at: str | None


def read_ref(spec: PhaseSpec, message: tuple[object, ...]) -> MessageRef:
    """Validate the message's one argument, strictly."""
    if len(message) != 1:
        raise InvalidEnvelope(f"invalid envelope: expected one argument, got {len(message)}")
    if isinstance(message[0], str):
        return MessageRef(_uuid(message[0]), None, None)
    envelope = parse(message[0])
    if envelope.header.type != spec.queue:
        raise InvalidEnvelope(f"invalid envelope: type {envelope.header.type} arrived in queue {spec.queue}")
    return MessageRef(envelope.header.job_id, envelope.header.send, envelope.header.created_at)


def _uuid(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise InvalidEnvelope("invalid envelope: a bare message holds a job id and nothing else") from None
