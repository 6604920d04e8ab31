"""Messages that are set aside: nothing can be said about their jobs yet, and no thread waits for them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.broker.delivery import Delivery

# A message is not kept unacknowledged for longer than this, in seconds: RabbitMQ closes the channel after half an hour.
LONGEST = 600.0


class Aside:
    """Which messages, and how many since the consumer of their queue came up. Changed in the AMQP thread only."""

    def __init__(self) -> None:
        self._held: set[Delivery] = set()
        self._of_consumer: Counter[str] = Counter()

    def add(self, delivery: Delivery, prefetch: int) -> bool:
        """True if they use up half of what their queue's consumer may hold: it needs a new one."""
        if delivery not in self._held:
            self._held.add(delivery)
            self._of_consumer[delivery.queue] += 1
        return self._of_consumer[delivery.queue] * 2 >= prefetch

    def remove(self, delivery: Delivery) -> None:
        """It is handed out again."""
        self._held.discard(delivery)

    def consumer_started(self, queue: str) -> None:
        """RabbitMQ counts by consumer: a new one starts from zero."""
        self._of_consumer[queue] = 0

    def lost(self) -> None:
        """The connection broke: they will be delivered again."""
        self._held, self._of_consumer = set(), Counter()

    def count(self) -> Counter[str]:
        """How many of each queue."""
        return Counter(delivery.queue for delivery in self._held.copy())
