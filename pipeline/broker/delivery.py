"""One message as one connection delivered it; whatever is not one of Dramatiq's is not let in."""

from __future__ import annotations

import itertools
import logging
from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson
from dramatiq import Message
from dramatiq.broker import MessageProxy

if TYPE_CHECKING:
    from pipeline.broker.swift import SwiftChannel

log = logging.getLogger("pipeline.broker")

BODY_LIMIT = 256 * 1024
# Tells the deliveries of a process apart, so that a claim that is repeated can be recognised.
_numbers = itertools.count(1)


class Delivery(MessageProxy):
    """A message with the channel that delivered it: only that channel may acknowledge it.

    ``deferred`` is set by whoever takes over the acknowledgement, to be made after a commit.
    ``returned`` is set when the message was given back to the broker before anybody started on it.
    ``abandoned`` is set when its thread is stuck and the job was settled without it.
    ``looks`` counts how often its job could not be claimed because another transaction held the row.
    """

    def __init__(
        self, message: Message[Any], channel: SwiftChannel, tag: int, queue: str, headers: dict[str, Any]
    ) -> None:
        super().__init__(message)
        # Dramatiq asks for these a dozen times a message, and its proxy looks each of them up anew.
        self.queue_name, self.actor_name, self.message_id = message.queue_name, message.actor_name, message.message_id
        self.args, self.kwargs, self.options = message.args, message.kwargs, message.options
        self.channel = channel
        self.tag = tag
        self.queue = queue
        self.headers = headers
        self.id = next(_numbers)
        self.arrived = monotonic()
        self.deferred = False
        self.returned = False
        self.abandoned = False
        self.looks = 0
        self.attempt: Any = None

    def continuing(self, message: Message[Any]) -> Delivery:
        """The job goes on to its next phase with this message in hand: acknowledging the new one acknowledges it."""
        following = Delivery(message, self.channel, self.tag, message.queue_name, {})
        following.arrived = self.arrived
        return following

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def priority(self) -> int:
        """Of the job, as its message says."""
        stated = self.options.get("broker_priority")
        return stated if type(stated) is int else 0

    @property
    def live(self) -> bool:
        """Whether the message is still ours: its connection stands and it was not given back."""
        return not self.returned and bool(self.channel.is_open)

    @property
    def revived(self) -> bool:
        """Whether the message came back from a dead-letter queue."""
        return "x-death" in self.headers or "x-pipeline-dead" in self.headers


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
