"""Messages put into RabbitMQ and taken out of it by hand, behind the engine's back."""

from __future__ import annotations

import json
from typing import Any

from pika import BasicProperties, BlockingConnection

from pipeline.broker.topology import declare


def publish(
    rabbitmq: BlockingConnection, queue: str, argument: Any, *, times: int = 1, headers: dict[str, Any] | None = None
) -> None:
    """A message for the queue's phase."""
    body = {
        "queue_name": queue,
        "actor_name": queue.replace("-", "_"),
        "args": [argument],
        "kwargs": {},
        "options": {},
        "message_id": "by-hand",
        "message_timestamp": 0,
    }
    publish_raw(rabbitmq, queue, json.dumps(body).encode(), times=times, headers=headers)


def publish_raw(
    rabbitmq: BlockingConnection, queue: str, body: bytes, *, times: int = 1, headers: dict[str, Any] | None = None
) -> None:
    """RabbitMQ has them when this returns: it answers the channel's end after what was sent before."""
    with rabbitmq.channel() as channel:
        declare(channel, [queue], "classic")
        for _ in range(times):
            channel.basic_publish("", queue, body, BasicProperties(delivery_mode=2, headers=headers))


def take(rabbitmq: BlockingConnection, queue: str) -> list[dict[str, Any]]:
    """All messages of a queue (a dead-letter queue, as a rule), which is empty then."""
    found: list[dict[str, Any]] = []
    with rabbitmq.channel() as channel:
        while True:
            method, properties, body = channel.basic_get(queue, auto_ack=True)
            if method is None or properties is None:
                return found
            found.append({"headers": properties.headers or {}, "body": body, "priority": properties.priority})


def ready(rabbitmq: BlockingConnection, queue: str) -> tuple[int, int]:
    """Messages that nobody has, and consumers: as RabbitMQ has it now, and not in its statistics."""
    with rabbitmq.channel() as channel:
        answer = channel.queue_declare(queue, passive=True).method
        return answer.message_count or 0, answer.consumer_count or 0
