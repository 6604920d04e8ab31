"""Messages as they come from the wire: whatever is not one of Dramatiq's is not let in."""

from __future__ import annotations

import logging
from typing import Any

import orjson
from dramatiq import Message

log = logging.getLogger("pipeline.broker")

BODY_LIMIT = 256 * 1024


def decode(queue: str, body: bytes) -> Message[Any] | None:
    """The message, or None if it belongs to the dead letters; the reason is logged."""
    if len(body) > BODY_LIMIT:
        log.error(
            "queue %s: a message of %d bytes was sent to the dead letters; the limit is %d",
            queue,
            len(body),
            BODY_LIMIT,
        )
        return None
    try:
        # Not Message.decode: the encoder is the application's, which may have set one of its own.
        message: Message[Any] = Message(**orjson.loads(body))
    except (orjson.JSONDecodeError, TypeError) as error:
        log.error("queue %s: a message that is not Dramatiq's was sent to the dead letters: %s", queue, error)
        return None
    if wrong := _wrong(message):
        log.error("queue %s: a message was sent to the dead letters: %s", queue, wrong)
        return None
    return message if message.queue_name == queue else message.copy(queue_name=queue)


def _wrong(message: Message[Any]) -> str | None:
    """What Dramatiq takes as given and would stumble over; a message with an ``eta`` it would keep in memory."""
    if not type(message.queue_name) is type(message.actor_name) is type(message.message_id) is str:
        return "its names are no text"
    if type(message.options) is not dict or type(message.kwargs) is not dict:
        return "its options or keywords are no object"
    return "it asks to be delayed, and nothing waits here" if "eta" in message.options else None
