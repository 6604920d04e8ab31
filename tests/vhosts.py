"""Vhosts for tests: an earlier test's, with its queues and nothing in them.

Declaring a worker's queues costs RabbitMQ more than most tests cost altogether. Those that are there already cost nothing.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

from pika import BlockingConnection, URLParameters
from pika.exceptions import AMQPError

from pipeline.broker.topology import SWEEPS, arguments, dead_letter_queue
from pipeline.dev.services.rabbitmq import RabbitMQ

# Emptying more of them takes longer than a new vhost.
MOST_QUEUES = 60
# Until RabbitMQ has heard that the consumers of a killed worker are gone, and has put back what they had.
SECONDS = 5.0


class Vhosts:
    """One for each test. What a test declared otherwise than workers do goes with its vhost."""

    def __init__(self, rabbitmq: RabbitMQ) -> None:
        self._rabbitmq = rabbitmq
        self._spare: list[str] = []

    def new(self, name: str) -> str:
        """A vhost of that name, without any queue."""
        self._rabbitmq.create_vhost(name)
        return name

    def any(self, name: str) -> str:
        """A vhost without any message; of that name, if there is none of an earlier test."""
        return self._spare.pop() if self._spare else self.new(name)

    def give_back(self, name: str) -> None:
        """Keep it for another test, if it can be emptied."""
        if self._emptied(name):
            self._spare.append(name)
        else:
            self._rabbitmq.delete_vhost(name)

    def _emptied(self, name: str) -> bool:
        queues = self._rabbitmq.queues(name)
        if len(queues) > MOST_QUEUES or not all(_as_workers_declare(queue) for queue in queues):
            return False
        try:
            with closing(BlockingConnection(URLParameters(self._rabbitmq.url(name)))) as connection:
                channel = connection.channel()
                until = time.monotonic() + SECONDS
                for queue in queues:
                    while channel.queue_declare(queue["name"], passive=True).method.consumer_count:
                        if time.monotonic() > until:
                            return False
                        time.sleep(0.01)
                    channel.queue_purge(queue["name"])
        except (AMQPError, OSError):
            return False
        return not any(map(sum, self._rabbitmq.queue_counts(name).values()))


def _as_workers_declare(queue: dict[str, Any]) -> bool:
    """Classic queues with the arguments of today: another kind would be refused to the next worker."""
    name, given = queue["name"], queue["arguments"]
    if name.startswith(SWEEPS):
        return bool(queue["type"] == "classic")
    return given in (arguments(name, "classic"), {"x-queue-type": "classic"}) and (
        given == arguments(name, "classic") or name == dead_letter_queue(name.removesuffix(".XQ"))
    )
