"""The moments of schedules, on clocks that are put forward and back; and which of them get a job."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate, islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import BadInput
from pipeline.declare.schedules.moments import Cron, Every, Moments, between
from pipeline.declare.schedules.schedule import moments_of

# An hour at night in spring and autumn; and half an hour, south of the equator.
ZONES = ("Europe/Paris", "Australia/Lord_Howe")
# When their clocks are put forward and back.
CHANGES = {
    "Europe/Paris": (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "Australia/Lord_Howe": (datetime(2026, 10, 3, 15, 30, tzinfo=UTC), datetime(2026, 4, 4, 15, tzinfo=UTC)),
}
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]  # a test's own moments


def first(moments: Moments, after: datetime, count: int = 1) -> list[datetime]:
    found = []
    for _ in range(count):
        moment = moments.after(after)
        assert moment is not None
        found.append(after := moment)
    return found


def field(lowest: int, highest: int) -> st.SearchStrategy[set[int]]:
    return st.sets(st.integers(lowest, highest), min_size=1, max_size=3)


def written(values: set[int]) -> str:
    return ",".join(map(str, sorted(values)))


# ---- the property: what is worked out is what a minute-by-minute look at the clocks gives


def on_the_clock(minutes: set[int], hours: set[int], zone: str, start: datetime, days: int) -> list[datetime]:
    """Each time that a clock which is never adjusted shows has one moment: the first at which the zone's clocks show it.

    For a time that they leave out that is the first moment at which they show a later one. Found minute by minute.
    """
    latest = latest_shown(zone, start, days)
    wanted = (latest[0] + DAY).replace(hour=0, minute=0)
    times = (wanted + n * MINUTE for n in range((days - 2) * 1440))
    return sorted(
        {start + bisect_left(latest, time) * MINUTE for time in times if time.minute in minutes and time.hour in hours}
    )


@cache
def latest_shown(zone: str, start: datetime, days: int) -> list[datetime]:
    """Of each minute the latest time that the zone's clocks have shown by then."""
    shown = ((start + n * MINUTE).astimezone(ZoneInfo(zone)).replace(tzinfo=None) for n in range(days * 1440))
    return list(accumulate(shown, max))


def in_real_time(minutes: set[int], zone: str, start: datetime, days: int) -> list[datetime]:
    """Every moment at which the zone's clocks show one of these minutes."""
    every = (start + n * MINUTE for n in range(days * 1440))
    return [moment for moment in every if moment.astimezone(ZoneInfo(zone)).minute in minutes]


@pytest.mark.parametrize("change", [0, 1], ids=["forward", "back"])
@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=60)
@given(minutes=field(0, 59), hours=st.sets(st.integers(0, 4), min_size=1, max_size=3))
def test_what_has_a_time_comes_once_in_each_day(zone: str, change: int, minutes: set[int], hours: set[int]) -> None:
    """Left out: at the end of the gap. Shown twice: the first time. Each time at most once, and none too much."""
    start = CHANGES[zone][change] - 2 * DAY
    cron = Cron(f"{written(minutes)} {written(hours)} * * *", zone)
    wanted = on_the_clock(minutes, hours, zone, start, 5)
    assert list(between(cron, wanted[0], wanted[-1])) == wanted


@pytest.mark.parametrize("change", [0, 1], ids=["forward", "back"])
@pytest.mark.parametrize("zone", ZONES)
@given(minutes=field(0, 59))
def test_what_comes_every_hour_follows_real_time(zone: str, change: int, minutes: set[int]) -> None:
    """None in a gap, and both where the clocks show a time twice."""
    start = CHANGES[zone][change] - timedelta(hours=6)
    cron = Cron(f"{written(minutes)} * * * *", zone)
    wanted = in_real_time(minutes, zone, start, 1)
    assert list(between(cron, start, start + DAY - MINUTE)) == wanted


@pytest.mark.parametrize("change", [0, 1], ids=["forward", "back"])
@pytest.mark.parametrize("zone", ["Europe/Paris", "America/New_York"])
def test_every_quarter_of_an_hour_is_every_real_one(zone: str, change: int) -> None:
    """Where clocks move by an hour."""
    day = utc(2026, 3, 29) if zone == "Europe/Paris" else utc(2026, 3, 8)
    start = (day if change == 0 else utc(2026, 10, 25) if zone == "Europe/Paris" else utc(2026, 11, 1)) - DAY
    found = list(between(Cron("*/15 * * * *", zone), start, start + 3 * DAY))
    assert found == [start + n * 15 * MINUTE for n in range(3 * 96 + 1)]


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)),
    st.sampled_from([*ZONES, "America/Havana", "Pacific/Apia"]),
)
def test_moments_only_go_forward(start: datetime, zone: str) -> None:
    """Also from a moment in the middle of a minute, and where midnight or a whole day is left out."""
    for expression in ("0 0 * * *", "30 1,2 * * *", "*/20 * * * *", "0 */2 * * 1-5"):
        moment = start.replace(tzinfo=UTC)
        for found in first(Cron(expression, zone), moment, 4):
            assert found > moment and found.second == found.microsecond == 0
            moment = found


# ---- single cases that a reader can check


def test_a_moment_in_the_gap_is_at_its_end_and_comes_once() -> None:
    """Paris has no 02:00 to 02:59 on 29 March 2026."""
    assert first(Cron("30 2 * * *", "Europe/Paris"), utc(2026, 3, 28, 12), 2) == [
        utc(2026, 3, 29, 1),
        utc(2026, 3, 30, 0, 30),
    ]
    several = Cron("0,15,30 2,3 * * *", "Europe/Paris")
    assert first(several, utc(2026, 3, 28, 12), 3) == [
        utc(2026, 3, 29, 1),
        utc(2026, 3, 29, 1, 15),
        utc(2026, 3, 29, 1, 30),
    ]


def test_a_moment_that_clocks_show_twice_comes_the_first_time() -> None:
    """Paris has two times 02:00 to 02:59 on 25 October 2026; also for who asks in between."""
    cron = Cron("30 2 * * *", "Europe/Paris")
    assert first(cron, utc(2026, 10, 24, 12), 2) == [utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30)]
    assert first(cron, utc(2026, 10, 25, 0, 45)) == first(cron, utc(2026, 10, 25, 1, 15)) == [utc(2026, 10, 26, 1, 30)]


def test_a_midnight_and_a_day_that_do_not_exist() -> None:
    """Havana goes forward at midnight; Samoa left out 30 December 2011."""
    assert first(Cron("@daily", "America/Havana"), utc(2026, 3, 7, 12)) == [utc(2026, 3, 8, 5)]
    samoa = Cron("0 12 * * *", "Pacific/Apia")
    assert first(samoa, utc(2011, 12, 29, 12), 3) == [
        utc(2011, 12, 29, 22),
        utc(2011, 12, 30, 10),
        utc(2011, 12, 30, 22),
    ]


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("@hourly", "0 * * * *"),
        ("@Daily", "0 0 * * *"),
        ("@weekly", "0 0 * * 7"),
        ("0 0 * * sun", "0 0 * * 0"),
        ("0 0 * * MON-FRI", "0 0 * * 1-5"),
        ("0 0 1 JAN,jul *", "0 0 1 1,7 *"),
        ("  0  0 1 * * ", "@monthly"),
        ("0 0 1 1 *", "@yearly"),
        ("*/20 3 * * *", "0,20,40 3 * * *"),
        ("10-50/20 3 * * *", "10,30,50 3 * * *"),
    ],
)
def test_two_ways_to_write_the_same(expression: str, same: str) -> None:
    """Names, words, steps, and Sunday by both of its numbers."""
    start = utc(2026, 1, 5)
    assert first(Cron(expression), start, 5) == first(Cron(same), start, 5)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("0 7 * *", r"^'0 7 \* \*' is not a cron expression \(it has another number of fields\): it has five fields"),
        ("0 0 0 * * *", "another number of fields"),
        ("61 * * * *", "bad minute"),
        ("0 24 * * *", "bad hour"),
        ("0 0 31 4 *", "bad day-of-month"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 * 13 *", "bad month"),
        ("0 0 * * tuesday", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("@reboot", "number of fields"),
        ("", "number of fields"),
        ("٣ 7 * * *", "bad minute"),
    ],
)
def test_a_wrong_expression_is_refused_with_what_is_wrong(expression: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Cron(expression)


@pytest.mark.parametrize("zone", ["Europe/Pariss", "", "../UTC", "/etc/localtime", "UTC\0"])
def test_a_zone_that_does_not_exist_is_refused(zone: str) -> None:
    with pytest.raises(BadInput, match=r"there is no time zone .*: write a name such as Europe/Paris or UTC"):
        Cron("@daily", zone)


def test_an_interval_counts_from_the_epoch() -> None:
    """So that every hour is on the hour, whoever asks."""
    assert first(Every(timedelta(hours=1)), utc(2026, 5, 5, 7, 59, 59), 2) == [utc(2026, 5, 5, 8), utc(2026, 5, 5, 9)]
    assert first(Every(timedelta(hours=1)), utc(2026, 5, 5, 8)) == [utc(2026, 5, 5, 9)]


@pytest.mark.parametrize("interval", [timedelta(0), timedelta(seconds=-5), timedelta(seconds=1.5), timedelta(days=367)])
def test_an_interval_is_whole_seconds(interval: timedelta) -> None:
    with pytest.raises(BadInput, match="whole seconds, at most 366 days"):
        Every(interval)


def test_a_schedule_has_one_way_to_say_when() -> None:
    """And an interval knows no time zones."""
    for cron, every in ((None, None), ("@daily", DAY)):
        with pytest.raises(BadInput, match="either a cron expression or every="):
            moments_of(cron, every, None)
    with pytest.raises(BadInput, match="leave the time zone out"):
        moments_of(None, DAY, "UTC")


def test_a_moment_is_quickly_found() -> None:
    """However rare it is: the leader works them out for all schedules."""
    rare = Cron("0 0 29 2 *", "Europe/Paris")
    assert list(islice(between(rare, utc(2026, 1, 1), utc(2040, 1, 1)), 9)) == [
        utc(2028, 2, 28, 23),
        utc(2032, 2, 28, 23),
        utc(2036, 2, 28, 23),
    ]
