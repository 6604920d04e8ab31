"""What a message says about itself: which send of which job it is."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from pipeline.declare.phase import PhaseSpec
from pipeline.journey.envelope import InvalidEnvelope, parse


@dataclass(frozen=True, slots=True)
class Token:
    """``send`` is None for a bare job id from an app: it is adopted if its job waits unsent."""

    job_id: UUID
    send: int | None
    sent_at: str | None


def read_token(spec: PhaseSpec, message: tuple[object, ...]) -> Token:
    """Validate the message's one argument, strictly."""
    if len(message) != 1:
        raise InvalidEnvelope(f"invalid envelope: expected one argument, got {len(message)}")
    if isinstance(message[0], str):
        return Token(_uuid(message[0]), None, None)
    envelope = parse(message[0])
    if envelope.header.type != spec.queue:
        raise InvalidEnvelope(f"invalid envelope: type {envelope.header.type} arrived in queue {spec.queue}")
    return Token(envelope.header.job_id, envelope.header.send, envelope.header.created_at)


def _uuid(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise InvalidEnvelope("invalid envelope: a bare message holds a job id and nothing else") from None
