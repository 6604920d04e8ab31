"""A worker's allowance to send hand-overs by itself, so that counting the next queue is not a cost of every job."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

import psycopg
from psycopg.rows import TupleRow

# The queue that follows each queue without a pool, and how many hand-overs into it are allowed just now.
ASK = "SELECT queue, hand_overs FROM pipeline.send_credits(%s)"
NEXT = """SELECT p.queue, n.queue FROM pipeline.phases p JOIN pipeline.phases n ON n.id = p.next_id
    WHERE n.pool IS NULL AND n.throttle_count IS NULL"""
FRESH = 0.25


class SendCredits:
    """Renewed a few times a second while hand-overs are made; a spent or stale grant is no grant."""

    def __init__(self) -> None:
        self._next: dict[str, str] = {}
        self._left: dict[str, int] = {}
        self._used: set[str] = set()
        self._learned = self._renewed = float("-inf")

    def refresh(self, connection: psycopg.Connection[TupleRow]) -> None:
        """Ask PostgreSQL for what the queues in use have room for."""
        now = monotonic()
        if now - self._learned > 60:
            self._next = dict(connection.execute(NEXT).fetchall())
            self._learned = now
        if self._used and now - self._renewed > FRESH:
            self._left = dict(connection.execute(ASK, (sorted(self._used),), prepare=True).fetchall())
            self._used.clear()
            self._renewed = now

    def spend(self, queues: Iterable[str]) -> list[bool | None]:
        """For each completed queue: True if the hand-over is covered, None if PostgreSQL must look for itself."""
        return [self._spend(queue) for queue in queues]

    def _spend(self, queue: str) -> bool | None:
        following = self._next.get(queue)
        if following is None:
            return None
        self._used.add(following)
        if self._left.get(following, 0) <= 0:
            return None
        self._left[following] -= 1
        return True
