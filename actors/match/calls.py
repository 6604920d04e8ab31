"""The calls for one record, each with a permit of the rate limit that all workers share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic

from actors.match.config import RATE_LIMIT, MatchSettings
from actors.match.memory import Memory
from pipeline import Job, Snooze

# A search and the entities that it finds: most records need no more.
AT_FIRST = 2


class Calls:
    """The first two permits are taken together; each further call, and one that is late, asks for another.

    ``remember`` keeps what is known so far when the job must wait between two calls: it then continues from there. How
    many permits are asked for depends on the memory alone: the next attempt asks for those that were kept for it.
    """

    def __init__(
        self, job: Job, settings: MatchSettings, memory: Memory, remember: Callable[[], Awaitable[None]]
    ) -> None:
        self._job = job
        self._settings = settings
        self._memory = memory
        self._remember = remember
        self._left = 0
        self._until = 0.0

    async def begin(self) -> None:
        """Return when the next call may be made; raises Snooze if that is further away."""
        if not self._left or monotonic() > self._until:
            await self._take(1 if self._memory.asked else AT_FIRST)
        self._left -= 1

    async def _take(self, calls: int) -> None:
        calls = min(calls, max(int(self._settings.rate_limit_burst), 1))
        try:
            await self._job.limit(RATE_LIMIT, calls)
        except Snooze:
            if self._memory.asked:
                await self._remember()
            raise
        self._left = calls
        self._until = monotonic() + self._settings.lateness
