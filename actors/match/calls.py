"""The calls for one record, each with a permit of the rate limit that all workers share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic

from actors.match.config import RATE_LIMIT, MatchSettings
from pipeline import Job, Snooze


class Calls:
    """Their permits are taken together, so that a record is done in one go; a call that is late asks for another.

    ``remember`` keeps what is known so far when the job must wait between two calls: it then continues from there.
    """

    def __init__(self, job: Job, settings: MatchSettings, count: int, remember: Callable[[], Awaitable[None]]) -> None:
        self._job = job
        self._settings = settings
        self._remember = remember
        self._left = min(count, max(int(settings.rate_limit_burst), 1))
        self._until: float | None = None

    async def begin(self) -> None:
        """Return when the next call may be made; raises Snooze if that is further away."""
        if self._until is None:
            await self._job.limit(RATE_LIMIT, self._left)
            self._until = monotonic() + self._settings.lateness
            self._left -= 1
        elif self._left and monotonic() <= self._until:
            self._left -= 1
        else:
            self._left = 0
            await self._another()

    async def _another(self) -> None:
        try:
            await self._job.limit(RATE_LIMIT)
        except Snooze:
            await self._remember()
            raise
