"""Encoding: an envelope inside a Dramatiq message."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from dramatiq import Message

from pipeline.journey.envelope import build


def compose(
    *,
    job_id: UUID,
    queue: str,
    actor: str,
    send: int,
    attempt: int,
    max_attempts: int,
    sent_at: datetime,
    body: dict[str, Any],
    trace_id: str,
    span_id: str,
) -> Message[Any]:
    """The message. ``sent_at`` is PostgreSQL's clock: the claim stores it in the history."""
    job = str(job_id)
    envelope = build(
        job_id=job,
        queue=queue,
        send=send,
        attempt=attempt,
        max_attempts=max_attempts,
        created_at=sent_at.isoformat(),
        body=body,
        trace_id=trace_id,
        span_id=span_id,
    )
    return Message(
        queue_name=queue,
        actor_name=actor,
        args=(envelope,),
        kwargs={},
        options={},
        message_id=f"{job}:{send}",
        message_timestamp=int(sent_at.timestamp() * 1000),
    )


def encode(message: Message[Any]) -> bytes:
    """The bytes on the wire."""
    return orjson.dumps(message)
