"""What a coin is worth, from prices seen. Pure, and the same for the same points in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

# Points that name less than half of the coin are most likely another coin.
WEAKEST = 0.5
# The usual bound for outliers: 3.5 robust standard deviations (1.4826 median absolute deviations each).
SPREAD, SIGMA = 3.5, 1.4826
MEAN_SIGMA = 1.2533


@dataclass(frozen=True)
class Seen:
    """One price, in cents of the one currency."""

    cents: int
    type: str
    strength: float


@dataclass(frozen=True)
class Value:
    """Low, mid and high are the quartiles of what is left without outliers; None where there is nothing."""

    low_cents: int | None
    mid_cents: int | None
    high_cents: int | None
    confidence: float
    points_used: int
    points_seen: int
    outliers: int
    points_by_type: dict[str, int]


def value(points: Sequence[Seen]) -> Value:
    """Value the coin; sold prices count for themselves when there are at least three of them."""
    fitting = [point for point in points if point.strength >= WEAKEST]
    sold = [point for point in fitting if point.type == "sold"]
    considered = sold if len(sold) >= 3 else fitting
    kept = without_outliers(considered)
    counts = dict(sorted(Counter(point.type for point in fitting).items()))
    if not kept:
        return Value(None, None, None, 0.0, 0, len(points), 0, counts)
    low, mid, high = quartiles([point.cents for point in kept])
    return Value(
        low, mid, high, _confidence(kept, low, mid, high), len(kept), len(points), len(considered) - len(kept), counts
    )


def without_outliers(points: Sequence[Seen]) -> list[Seen]:
    """Points within 3.5 robust deviations of the median; fewer than four cannot tell an outlier."""
    if len(points) < 4:
        return list(points)
    middle = median(point.cents for point in points)
    distances = [abs(point.cents - middle) for point in points]
    # More than half are equal: the mean deviation still tells the far from the near.
    bound = SPREAD * (SIGMA * median(distances) or MEAN_SIGMA * fmean(distances))
    return [point for point, distance in zip(points, distances, strict=True) if distance <= bound]


def quartiles(cents: Sequence[int]) -> tuple[int, int, int]:
    """First quartile, median and third quartile in whole cents."""
    ordered = sorted(cents)

    def at(share: float) -> int:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return round(ordered[below] + (ordered[above] - ordered[below]) * (place - below))

    return at(0.25), at(0.5), at(0.75)


def _confidence(kept: Sequence[Seen], low: int, mid: int, high: int) -> float:
    """More points, closer together, better matches and real sales make it higher; four decimals."""
    enough = len(kept) / (len(kept) + 4)
    close = max(0.0, 1 - (high - low) / (2 * mid))
    sales = 0.7 + 0.3 * fmean(point.type == "sold" for point in kept)
    # The sum is taken in order of size, so that the order of the points cannot move the last digit.
    fit = fmean(sorted(point.strength for point in kept))
    return round(enough * close * sales * fit, 4)
