"""What is said of a schedule, in code or at run time, and which of its moments get a job when the leader looks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal, get_args

from pipeline.declare.errors import BadInput
from pipeline.declare.options import LONGEST_TAG, MOST_TAGS
from pipeline.declare.schedules.moments import Cron, Every, Moments, between

Overlap = Literal["allow", "skip", "queue", "cancel"]
NAME = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?")
LONGEST_NAME = 50
MOST_MADE_UP, OLDEST_MADE_UP = 1000, timedelta(days=31)
# A moment whose job is late by less than this was not missed.
LATE = timedelta(minutes=1)
# Jobs of one schedule that are submitted in one transaction.
MOST = 100


@dataclass(frozen=True)
class ScheduleSpec:
    """A schedule as it is stored. ``body`` is JSON."""

    name: str
    cron: str | None
    every: timedelta | None
    timezone: str | None
    body: str
    overlap: Overlap
    catch_up: int | timedelta
    priority: int
    tags: Sequence[str]

    def __post_init__(self) -> None:
        """Raise BadInput for what cannot be meant."""
        if not NAME.fullmatch(self.name) or len(self.name) > LONGEST_NAME:
            raise BadInput(f"{self.name!r} is not a schedule's name: up to 50 lower-case letters, digits, - and _")
        moments_of(self.cron, self.every, self.timezone)
        if self.overlap not in get_args(Overlap):
            raise BadInput(f"overlap is allow, skip, queue or cancel, not {self.overlap!r}")
        _check_catch_up(self.catch_up)
        if not 0 <= self.priority <= 9:
            raise BadInput(f"priority {self.priority} is outside 0 … 9: 0 is the default, 9 goes first")
        _check_tags(self.tags)


def moments_of(cron: str | None, every: timedelta | None, timezone: str | None) -> Moments:
    """The moments of a schedule that has either a cron expression or an interval."""
    if cron is not None and every is None:
        return Cron(cron, timezone or "UTC")
    if every is not None and cron is None:
        if timezone is not None:
            raise BadInput("an interval is the same in every time zone: leave the time zone out")
        return Every(every)
    raise BadInput("a schedule has either a cron expression or every=…")


def to_submit(
    moments: Moments, first: datetime, now: datetime, *, overlap: Overlap, catch_up: int | timedelta
) -> tuple[list[datetime], datetime | None]:
    """Of the moments from ``first`` to ``now`` those that get a job in this step, and the moment that follows them.

    Where jobs may not overlap that is one: the oldest if they queue, else the latest.
    """
    missed = _not_missed(moments, first, now, catch_up)
    if overlap == "allow":
        chosen = missed[: MOST + 1]
        if len(chosen) > MOST:
            return chosen[:MOST], chosen[MOST]
    else:
        chosen = missed[:1] if overlap == "queue" else missed[-1:]
    return chosen, moments.after(chosen[-1] if chosen else now)


def to_backfill(
    moments: Moments, first: datetime, until: datetime, overlap: Overlap
) -> tuple[list[datetime], datetime | None]:
    """The moments of a backfill that get a job in this step, and where it goes on; None: it is done."""
    most = MOST if overlap == "allow" else 1
    chosen = list(islice(between(moments, first, until), most + 1))
    return chosen[:most], chosen[most] if len(chosen) > most else None


def _not_missed(moments: Moments, first: datetime, now: datetime, catch_up: int | timedelta) -> list[datetime]:
    """Those of the last minute, and of the missed ones before it those that are made up; oldest first."""
    if isinstance(catch_up, timedelta):
        return list(islice(between(moments, max(first, now - max(catch_up, LATE)), now), MOST + 1))
    span = LATE
    recent = found = list(between(moments, max(first, now - span), now))
    # However long nobody looked, and however often there is a moment: about as many are worked out as are asked for.
    while len(found) < catch_up and now - span > first:
        span *= 2
        found = list(between(moments, max(first, now - span), now))
    return found[-max(catch_up, len(recent)) :] if found else found


def _check_catch_up(catch_up: int | timedelta) -> None:
    most: int | timedelta = OLDEST_MADE_UP if isinstance(catch_up, timedelta) else MOST_MADE_UP
    least: int | timedelta = timedelta(0) if isinstance(catch_up, timedelta) else 0
    if not least <= catch_up <= most:  # type: ignore[operator]  # both are of one kind
        raise BadInput(f"catch_up is a number of moments up to 1000, or an age of up to 31 days, not {catch_up}")


def _check_tags(tags: Sequence[str]) -> None:
    if isinstance(tags, str):
        raise BadInput(f"tags is a list of words, not the text {tags!r}")
    if len(tags) >= MOST_TAGS or not all(isinstance(tag, str) and 0 < len(tag) <= LONGEST_TAG for tag in tags):
        raise BadInput(
            f"a schedule has at most {MOST_TAGS - 1} tags of 1 to {LONGEST_TAG} characters: its jobs get one more"
        )
