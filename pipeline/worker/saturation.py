"""A process whose threads are all busy holds no messages back from processes that have free ones."""

from __future__ import annotations

import threading
from time import monotonic

from pipeline.broker.inbound import Inbound
from pipeline.broker.link import Link

PATIENCE = 0.5


class Saturation:
    """Counts busy threads. If all stay busy for half a second, unstarted messages go back to their queues.

    Whether to take messages is decided in one thread, the AMQP one, from what is true at that moment: whoever notices a
    change only asks for a decision.
    """

    def __init__(self, link: Link, inbound: Inbound, threads: int) -> None:
        self._link = link
        self._inbound = inbound
        self._threads = threads
        self._busy = 0
        self._ended = 0
        self._paused = False
        self._watching = False
        self._changed = threading.Condition()

    def started(self) -> None:
        with self._changed:
            self._busy += 1
            if self._busy < self._threads or self._watching:
                return
            self._watching = True
            seen = self._ended
        self._link.call(lambda: self._link.later(PATIENCE, lambda: self._look(seen)))

    def ended(self) -> None:
        with self._changed:
            self._busy -= 1
            self._ended += 1
            resume, self._paused = self._paused, False
            self._changed.notify_all()
        if resume:
            self._inbound.pause_if(lambda: self._paused)

    def wait_until_idle(self, timeout: float) -> bool:
        """Whether no thread is busy, at the latest after so many seconds."""
        deadline = monotonic() + timeout
        with self._changed:
            return self._changed.wait_for(lambda: self._busy <= 0, max(0.0, deadline - monotonic()))

    def _look(self, seen: int) -> None:
        with self._changed:
            self._watching = self._busy >= self._threads
            now = self._ended
            stuck = self._watching and now == seen
            if stuck:
                self._paused, self._watching = True, False
        if stuck:
            self._inbound.pause_if(lambda: self._paused)
        elif self._watching:
            self._link.later(PATIENCE, lambda: self._look(now))
