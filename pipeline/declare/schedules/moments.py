"""The moments of a schedule: of a cron expression in a time zone, or of an interval. Time is a parameter here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from pipeline.declare.errors import BadInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
# No two changes of a clock lie so close together, and none moves it by more than a day.
APART = timedelta(days=2)
LONGEST = timedelta(days=366)
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS = "it has five fields (minute hour day month weekday), such as 0 7 * * 1, or is a word such as @daily"


class Moments(Protocol):
    """An endless row of moments."""

    def after(self, moment: datetime) -> datetime | None:
        """The first one that is later. None: there is none."""


@dataclass(frozen=True)
class Every:
    """Every so many seconds since the midnight (UTC) with which 1970 began: every hour is on the hour."""

    interval: timedelta

    def __post_init__(self) -> None:
        if not timedelta(seconds=1) <= self.interval <= LONGEST or self.interval.microseconds:
            raise BadInput(f"every is whole seconds, at most 366 days, not {self.interval}")

    def after(self, moment: datetime) -> datetime:
        return EPOCH + ((moment - EPOCH) // self.interval + 1) * self.interval


@dataclass(frozen=True)
class Cron:
    """The moments of a cron expression on the clocks of a time zone.

    Where clocks are put forward, a moment that they leave out is the first moment after the gap; where they are put
    back, one that they show twice is the first of the two. An expression for every hour follows real time instead: it
    has no moment in a gap, and both where the clocks show one twice.
    """

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        if self.after(EPOCH) is None:
            raise BadInput(f"the cron expression {self.expression!r} has no moment: no such day comes")

    def after(self, moment: datetime) -> datetime | None:
        try:
            return self._in_real_time(moment) if self._every_hour else self._by_the_clock(moment)
        except StopIteration:
            return None

    @cached_property
    def _fields(self) -> str:
        return " ".join(ALIASES.get(self.expression.strip().lower(), self.expression).split())

    @cached_property
    def _zone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.timezone)
        except (LookupError, ValueError, OSError):
            raise BadInput(
                f"there is no time zone {self.timezone!r}: write a name such as Europe/Paris or UTC"
            ) from None

    @cached_property
    def _every_hour(self) -> bool:
        return self._clock(EPOCH.replace(tzinfo=None)).hours == set(range(24))

    def _clock(self, shown: datetime) -> CronSim:
        """What a clock that is never adjusted shows at the moments after this one."""
        try:
            if len(self._fields.split()) != 5:
                raise CronSimError("it has another number of fields")
            return CronSim(self._fields, shown)
        except CronSimError as error:
            said = str(error)
            raise BadInput(
                f"{self.expression!r} is not a cron expression ({said[:1].lower()}{said[1:]}): {FIELDS}"
            ) from None

    def _by_the_clock(self, moment: datetime) -> datetime:
        clock = self._clock(self._shown(moment))
        while True:
            found = self._first_at(next(clock))
            if found > moment:
                return found

    def _shown(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone).replace(tzinfo=None)

    def _first_at(self, shown: datetime) -> datetime:
        """When clocks first show this, or the end of the gap in which they do not."""
        found = shown.replace(tzinfo=self._zone).astimezone(UTC)
        if self._shown(found) == shown:
            return found
        return self._change(found - APART, found + APART)

    def _in_real_time(self, moment: datetime) -> datetime:
        offset = self._offset(moment)
        while True:
            shown = (moment + offset).replace(tzinfo=None)
            found = next(self._clock(shown)).replace(tzinfo=UTC) - offset
            if found - moment > APART:
                # Whatever the clocks are put to meanwhile, they show no moment more than a day earlier than this.
                moment = found - APART
                offset = self._offset(moment)
            elif self._offset(found) == offset:
                return found
            else:
                change = self._change(moment + INSTANT, found)
                moment, offset = change - INSTANT, self._offset(change)

    def _offset(self, moment: datetime) -> timedelta:
        offset = moment.astimezone(self._zone).utcoffset()
        assert offset is not None
        return offset

    def _change(self, before: datetime, after: datetime) -> datetime:
        """The moment between these two at which the clocks are put forward or back."""
        old = self._offset(before)
        low, high = int(before.timestamp()), int(after.timestamp()) + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(datetime.fromtimestamp(middle, UTC)) == old:
                low = middle
            else:
                high = middle
        return datetime.fromtimestamp(high, UTC)


def between(moments: Moments, first: datetime, last: datetime) -> Iterator[datetime]:
    """Those from ``first`` to ``last``, both included."""
    found = moments.after(first - INSTANT)
    while found is not None and found <= last:
        yield found
        found = moments.after(found)
