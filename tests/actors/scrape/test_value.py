"""The valuation: robust, in order, and the same for the same points in any order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.scrape.value import Seen, value

seen = st.builds(
    Seen, cents=st.integers(1, 10**9), type=st.sampled_from(["sold", "ask", "bid"]), strength=st.floats(0, 1)
)
near = st.lists(st.integers(9_000, 11_000), min_size=8, max_size=30)


def sold(*cents: int) -> list[Seen]:
    return [Seen(price, "sold", 1.0) for price in cents]


@given(st.lists(seen, max_size=40))
def test_low_mid_and_high_are_in_order_and_within_what_was_seen(points: list[Seen]) -> None:
    """And nothing is said where nothing fits."""
    found = value(points)
    assert 0 <= found.confidence <= 1 and found.points_used + found.outliers <= found.points_seen == len(points)
    if found.mid_cents is None:
        assert found.points_used == 0 and all(point.strength < 0.5 for point in points)
        return
    cents = [point.cents for point in points]
    assert min(cents) <= found.low_cents <= found.mid_cents <= found.high_cents <= max(cents)  # type: ignore[operator]


@given(st.lists(seen, max_size=20), st.randoms())
def test_the_order_of_the_points_does_not_matter(points: list[Seen], random: object) -> None:
    """Recomputing gives the same row."""
    shuffled = list(points)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert value(shuffled) == value(points)


@given(near, st.integers(50, 100_000))
def test_an_absurd_price_moves_nothing(prices: list[int], times: int) -> None:
    """One listing at many times the price is left out and counted."""
    found = value(sold(*prices, 11_000 * times))
    assert found.outliers >= 1 and found.high_cents is not None and found.high_cents <= 11_000


@given(near, st.integers(2, 50))
def test_dearer_coins_are_valued_the_same_way(prices: list[int], times: int) -> None:
    """All prices times k: the value times k, the confidence as it was (up to whole cents)."""
    small, large = value(sold(*prices)), value(sold(*(price * times for price in prices)))
    assert abs(large.mid_cents - small.mid_cents * times) <= times  # type: ignore[operator]
    assert abs(large.confidence - small.confidence) < 0.01


def test_real_sales_count_for_themselves() -> None:
    """With three of them, what people merely ask is not part of the value, but of the counts."""
    points = [*sold(100, 102, 104), *(Seen(500, "ask", 1.0) for _ in range(5)), Seen(10, "bid", 0.9)]
    found = value(points)
    assert (found.low_cents, found.mid_cents, found.high_cents) == (101, 102, 103)
    assert found.points_by_type == {"ask": 5, "bid": 1, "sold": 3}


def test_another_coin_is_not_counted() -> None:
    """A listing that names less than half of the coin."""
    assert value([*sold(100, 100), Seen(9, "sold", 0.4)]).points_used == 2


def test_equal_prices_do_not_make_their_neighbour_an_outlier_of_nothing() -> None:
    """More than half equal: the median deviation is zero and must not remove everything else."""
    found = value(sold(100, 100, 100, 100, 101, 99, 5_000))
    assert found.outliers == 1 and found.mid_cents == 100


def test_more_points_are_believed_more() -> None:
    """The same spread, ten times as many."""
    assert value(sold(*[100, 110] * 20)).confidence > value(sold(100, 110, 100, 110)).confidence
