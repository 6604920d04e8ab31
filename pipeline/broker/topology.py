"""Names and arguments of everything the project declares in RabbitMQ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol

DEAD_LETTERS = "pipeline.dead-letters"
SWEEPS = "pipeline.sweeps"
PRIORITIES = 9
# A connection that closes raises the count of every prefetched message: the limit only has to stop a message that kills
# workers before a claim, so it is generous. What a busy worker gives back does not count (see journey/give_back.py).
DELIVERY_LIMIT = 50

QueueType = Literal["classic", "quorum"]


class Declares(Protocol):
    """The part of a channel that declaring needs; blocking and asynchronous channels both have it."""

    def exchange_declare(self, exchange: str, exchange_type: Any = ..., *, durable: bool = ...) -> Any: ...

    def queue_declare(self, queue: str, *, durable: bool = ..., arguments: dict[str, Any] | None = ...) -> Any: ...

    def queue_bind(self, queue: str, exchange: str, routing_key: str | None = ...) -> Any: ...


def dead_letter_queue(queue: str) -> str:
    """Where rejected messages of ``queue`` end. They do not expire."""
    return f"{queue}.XQ"


def arguments(queue: str, queue_type: QueueType) -> dict[str, Any]:
    """The queue's arguments. They cannot change once declared, so there are few.

    The type is always said: what a vhost gives to those who do not say it may be another one, with other arguments.
    """
    common: dict[str, Any] = {
        "x-queue-type": queue_type,
        "x-dead-letter-exchange": DEAD_LETTERS,
        "x-dead-letter-routing-key": dead_letter_queue(queue),
    }
    if queue_type == "quorum":
        return {**common, "x-delivery-limit": DELIVERY_LIMIT}
    return {**common, "x-max-priority": PRIORITIES}


def declare(channel: Declares, queues: Iterable[str], queue_type: QueueType) -> None:
    """Declare the dead-letter exchange and the queues with theirs. Repeating it changes nothing."""
    declare_exchange(channel)
    for queue in queues:
        declare_queue(channel, queue, queue_type)


def declare_exchange(channel: Declares) -> None:
    channel.exchange_declare(DEAD_LETTERS, "direct", durable=True)


def declare_queue(channel: Declares, queue: str, queue_type: QueueType) -> None:
    """The queue and the one for its dead letters. The exchange must be there."""
    dead = dead_letter_queue(queue)
    channel.queue_declare(dead, durable=True, arguments={"x-queue-type": queue_type})
    channel.queue_bind(dead, DEAD_LETTERS, dead)
    channel.queue_declare(queue, durable=True, arguments=arguments(queue, queue_type))
