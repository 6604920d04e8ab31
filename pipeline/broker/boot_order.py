"""Which message is first when a process begins to consume: by the order of the phases, not of the consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.broker.inbound import Delivery

# One queue that RabbitMQ does not open must not silence the process.
LONGEST_WAIT = 2.0


class BootOrder:
    """Holds deliveries back until every queue has been heard, then hands them out, earliest phase first.

    Consumers come up one by one. Whoever handed out what comes first would let chance decide which phase is served
    first, and the others wait behind it. Used in the AMQP thread only.
    """

    def __init__(
        self,
        rank: Callable[[str], int],
        hand_out: Callable[[Delivery], None],
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self.rank = rank
        self._hand_out = hand_out
        self._later = later
        self._waits_for: set[str] = set()
        self.over = True
        self._held: list[Delivery] = []
        self._round = 0
        self._timed = False

    def expect(self, queues: Iterable[str]) -> None:
        """Begin: nothing is handed out until these were heard. What was held belongs to a connection that is gone."""
        self._round += 1
        self._timed = False
        self._waits_for = set(queues)
        self.over = not self._waits_for
        self._held = []

    def started(self, queue: str) -> bool:
        """A queue's consumer comes up. True if the order waits to hear of it."""
        if self._waits_for and not self._timed:
            self._timed = True
            this = self._round
            self._later(LONGEST_WAIT, lambda: self.release() if this == self._round else None)
        return queue in self._waits_for

    def heard(self, queue: str) -> None:
        """All that RabbitMQ had for this queue's consumer at first has arrived."""
        if self._waits_for:
            self._waits_for.discard(queue)
            if not self._waits_for:
                self.release()

    def hold(self, delivery: Delivery) -> None:
        """Keep it for later: the order is not ``over`` yet."""
        self._held.append(delivery)

    def release(self) -> None:
        """Hand out what is held; from now on deliveries go straight through."""
        self._waits_for, self.over = set(), True
        held, self._held = self._held, []
        for delivery in sorted(held, key=lambda delivery: self.rank(delivery.queue)):
            self._hand_out(delivery)
