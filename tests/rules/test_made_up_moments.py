"""Which moments of a schedule get a job: those on time, some of the missed ones, those of a backfill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pipeline.declare.schedules.moments import Every, between
from pipeline.declare.schedules.schedule import MOST, Overlap, to_backfill, to_submit

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]  # a test's own moments


def chosen(
    every: timedelta, ago: timedelta, catch_up: int | timedelta, overlap: Overlap = "allow"
) -> tuple[list[timedelta], timedelta]:
    """How long ago the moments were that get a job, and when the next one is, at half past something."""
    now = utc(2026, 5, 5, 12, 0, 30)
    moments = Every(every)
    oldest = moments.after(now - ago)
    found, following = to_submit(moments, oldest, now, overlap=overlap, catch_up=catch_up)
    assert following is not None
    return [now - moment for moment in found], following - now


HALF, SECOND, HOUR = timedelta(seconds=30), timedelta(seconds=1), timedelta(hours=1)


def test_what_is_on_time_gets_its_job_whatever_is_made_up() -> None:
    """Up to a minute late is on time: a leader that dies makes no moment a missed one."""
    for catch_up in (0, 1, timedelta(0)):
        assert chosen(MINUTE, MINUTE, catch_up) == ([HALF], HALF)
        found, following = chosen(SECOND, 10 * SECOND, catch_up)
        assert (len(found), following) == (10, SECOND)


def test_of_what_was_missed_the_latest_is_made_up() -> None:
    """By default; or so many, or what is not too old, or nothing."""
    assert chosen(MINUTE * 10, HOUR * 5, 1)[0] == [HALF]
    assert chosen(HOUR * 2, DAY, 1)[0] == [HALF]
    assert chosen(HOUR, DAY, 3)[0] == [HALF + 2 * HOUR, HALF + HOUR, HALF]
    assert chosen(HOUR, DAY, timedelta(hours=2, minutes=5))[0] == [HALF + 2 * HOUR, HALF + HOUR, HALF]
    assert chosen(timedelta(days=7), timedelta(days=40), 0)[0] == []
    assert len(chosen(HOUR, DAY, 1000)[0]) == 24


def test_many_are_made_up_in_bounded_steps() -> None:
    """The oldest first; the next step goes on where this one ended."""
    found, following = chosen(MINUTE, DAY, 250)
    assert len(found) == MOST and found[0] == 249 * MINUTE + HALF
    assert following == -(found[-1] - MINUTE)


def test_where_jobs_may_not_overlap_one_gets_its_job() -> None:
    """The oldest, if they queue; else the latest, and the others count as skipped or replaced."""
    assert chosen(HOUR, DAY, 3, "queue") == ([HALF + 2 * HOUR], -(HALF + HOUR))
    for overlap in ("skip", "cancel"):
        found, following = chosen(HOUR, DAY, 3, overlap)
        assert (found, following) == ([HALF], HOUR - HALF)


@given(st.integers(1, 4 * 3600), st.integers(61, 10 * 86400), st.integers(0, 40))
def test_the_made_up_ones_are_the_latest_ones(seconds: int, ago: int, catch_up: int) -> None:
    """However long nobody looked: the same as from the list of all missed moments."""
    now = utc(2026, 5, 5, 12, 0, 30)
    every = Every(timedelta(seconds=seconds))
    oldest = every.after(now - timedelta(seconds=ago))
    late = list(between(every, max(oldest, now - timedelta(seconds=200 * seconds + 60)), now))
    on_time = sum(moment >= now - MINUTE for moment in late)
    found, _ = to_submit(every, oldest, now, overlap="allow", catch_up=catch_up)
    wanted = late[-max(catch_up, on_time) :] if max(catch_up, on_time) else []
    assert found == wanted[:MOST]


def test_a_backfill_goes_on_where_it_ended() -> None:
    """A hundred at a time, or one where jobs may not overlap."""
    every, start = Every(HOUR), utc(2026, 1, 1)
    found, following = to_backfill(every, start, start + 10 * DAY, "allow")
    assert (len(found), found[0], following) == (MOST, start, start + MOST * HOUR)
    assert to_backfill(every, start, start + HOUR, "skip") == ([start], start + HOUR)
    assert to_backfill(every, start, start, "queue") == ([start], None)
    assert to_backfill(every, start + MINUTE, start + 2 * MINUTE, "allow") == ([], None)
