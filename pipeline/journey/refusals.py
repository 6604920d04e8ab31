"""Queues that RabbitMQ takes no messages for just now: full by a policy of its own, or without a leader."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

FIRST, LONGEST = 0.2, 5.0


class Refusals:
    """A queue that refuses is left alone, longer every time: whatever is sent in vain is written twice."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, float]] = {}

    def heard(self, sent: Iterable[str], refused: Iterable[str]) -> None:
        """What came of a batch: the queues in it, and those among them that did not take everything."""
        again = set(refused)
        for queue in set(sent) - again:
            self._until.pop(queue, None)
        for queue in again:
            _, last = self._until.get(queue, (0.0, FIRST / 2))
            pause = min(2 * last, LONGEST)
            self._until[queue] = (monotonic() + pause, pause)

    def resting(self) -> list[str]:
        """The queues to leave alone now."""
        now = monotonic()
        return [queue for queue, (until, _) in self._until.items() if until > now]

    def next_try(self) -> float:
        """Seconds until one of them may be tried again."""
        now = monotonic()
        return min((until - now for until, _ in self._until.values() if until > now), default=float("inf"))

    def forget(self) -> None:
        """A new connection: whatever was refused may be taken now."""
        self._until.clear()
