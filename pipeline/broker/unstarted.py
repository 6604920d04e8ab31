"""What a process has fetched and not begun, and what it has set aside for a moment."""

from __future__ import annotations

from collections import Counter, deque
from functools import reduce
from operator import or_
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.broker.delivery import Delivery

# RabbitMQ gives a connection up after two missed heartbeats of ten seconds; until then it keeps what it had sent there.
NOTICED = 30.0
REPORTS = 3
# A message is not kept unacknowledged for longer than this, in seconds: RabbitMQ closes the channel after half an hour.
LONGEST_ASIDE = 600.0


class Unstarted:
    """Messages in hand, and the most there were of each queue at any one time during the last three reports.

    Whoever compares RabbitMQ's ready messages with the jobs that wait asks what was in hand at a moment in the past,
    and messages come, are begun and are given back all the time: only the most there were is an answer that holds.
    """

    def __init__(self) -> None:
        self._held: set[Delivery] = set()
        self._now: Counter[str] = Counter()
        self._priorities: Counter[int] = Counter()
        self._most: deque[Counter[str]] = deque([Counter()], maxlen=REPORTS)
        self._doubtful: list[tuple[float, Counter[str]]] = []
        self._lock = Lock()

    def __bool__(self) -> bool:
        return bool(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def highest(self) -> int:
        """The highest priority among them; -1 if there are none."""
        return max((priority for priority, held in self._priorities.copy().items() if held), default=-1)

    def add(self, delivery: Delivery) -> None:
        with self._lock:
            self._held.add(delivery)
            self._priorities[delivery.priority] += 1
            self._now[delivery.queue] += 1
            most = self._most[-1]
            most[delivery.queue] = max(most[delivery.queue], self._now[delivery.queue])

    def discard(self, delivery: Delivery) -> None:
        """Somebody begins with it, or it cannot be handed over."""
        with self._lock:
            if delivery in self._held:
                self._held.remove(delivery)
                self._priorities[delivery.priority] -= 1
                self._now[delivery.queue] -= 1

    def take(self) -> set[Delivery]:
        """All of them, to be given back: each is marked, so that nobody begins with it any more."""
        with self._lock:
            taken, self._held = self._held, set()
            self._now.clear()
            self._priorities.clear()
            for delivery in taken:
                delivery.returned = True
            return taken

    def lost(self) -> None:
        """The connection broke: RabbitMQ may not know yet, and hold them for us."""
        with self._lock:
            self._doubtful.append((monotonic() + NOTICED, self._now))
            self._held, self._now = set(), Counter()
            self._priorities.clear()

    def report(self) -> Counter[str]:
        """The queues of which there was anything."""
        with self._lock:
            self._doubtful = [(until, counts) for until, counts in self._doubtful if monotonic() < until]
            doubtful = sum((counts for _, counts in self._doubtful), Counter())
            most: Counter[str] = reduce(or_, self._most, Counter())
            self._most.append(+self._now)
            return most + doubtful


class Aside:
    """Messages that wait for a moment: nothing can be said about their jobs yet, and no thread waits for them.

    Counted since the consumer of their queue came up. Changed in the AMQP thread only.
    """

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
