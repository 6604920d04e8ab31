"""Delays grow, stay below their cap, and are spread a little."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.declare.backoff import DAY, Backoff, exponential

seconds = st.floats(min_value=0, max_value=1e6)
bases = st.floats(min_value=1e-3, max_value=1e6)
shares = st.floats(min_value=0, max_value=1)
chances = st.floats(min_value=0, max_value=1, exclude_max=True)
failures = st.integers(min_value=-3, max_value=10_000)
schedules = st.lists(seconds, max_size=6).map(tuple)
backoffs = st.builds(Backoff, schedule=schedules, base=bases, cap=seconds, jitter=shares)


@given(backoffs, failures, chances)
def test_a_delay_is_never_negative_and_never_above_the_cap(backoff: Backoff, n: int, chance: float) -> None:
    """Whatever the schedule, the number of failures and the dice say."""
    assert 0 <= backoff.delay(n, chance) <= backoff.cap


@given(backoffs, failures, chances)
def test_jitter_only_adds_and_at_most_its_share(backoff: Backoff, n: int, chance: float) -> None:
    """Jobs that failed together come back apart, and none too early."""
    plain = backoff.delay(n)
    assert plain <= backoff.delay(n, chance) <= plain * (1 + backoff.jitter) + 1e-9


@given(bases, seconds, st.integers(min_value=1, max_value=200))
def test_an_exponential_delay_grows_until_its_cap(base: float, cap: float, n: int) -> None:
    """Each failure waits at least as long as the one before."""
    backoff = exponential(base, cap=cap, jitter=0)
    assert backoff.delay(n) <= backoff.delay(n + 1) <= cap


@given(schedules.filter(bool), st.integers(min_value=1, max_value=50))
def test_a_rising_schedule_never_falls_back(schedule: tuple[float, ...], n: int) -> None:
    """The last entry repeats."""
    backoff = Backoff(schedule=tuple(sorted(schedule)), jitter=0)
    assert backoff.delay(n) <= backoff.delay(n + 1)
    assert backoff.delay(len(schedule) + n) == backoff.delay(len(schedule))


def test_the_schedule_comes_first_and_then_the_exponent() -> None:
    """5 s, 30 s, then base, twice base, four times base."""
    backoff = Backoff(schedule=(5, 30), base=60, jitter=0)
    assert [backoff.delay(n) for n in range(1, 7)] == [5, 30, 60, 120, 240, 480]


def test_the_default_is_the_seeds_schedule_with_a_day_as_its_cap() -> None:
    """5 s, 30 s, 2 min, and never more than 24 hours."""
    assert [Backoff(jitter=0).delay(n) for n in (1, 2, 3, 4)] == [5, 30, 120, 120]
    assert DAY == 24 * 60 * 60
    assert exponential(1).delay(10**9) == DAY


def test_no_failure_at_all_waits_like_the_first() -> None:
    """A count of zero is not an error: the caller may ask before it counts."""
    assert Backoff(jitter=0).delay(0) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"schedule": ()},
        {"schedule": (-1.0,)},
        {"schedule": (), "base": 0.0},
        {"schedule": (), "base": -2.0},
        {"jitter": 1.5},
        {"jitter": -0.1},
        {"jitter": float("nan")},
    ],
)
def test_a_backoff_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    """At declaration, not at the first failure in the night."""
    with pytest.raises(ValueError, match=r"Backoff|delays|jitter"):
        Backoff(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"cap": -1.0}, {"schedule": (float("nan"),)}, {"schedule": (), "base": float("nan")}]
)
def test_a_backoff_whose_delay_would_be_no_length_of_time_is_refused(wrong: dict[str, object]) -> None:
    """A negative cap or a NaN would reach PostgreSQL as a delay."""
    with pytest.raises(ValueError, match=r".+"):
        Backoff(**wrong)  # type: ignore[arg-type]
