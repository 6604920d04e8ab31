"""Paired rounds: every side has its turn in every round, and a ratio is the median of the rounds' own ratios.

A machine's pace changes from minute to minute; what two sides did within the same seconds can be compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Measured = Mapping[str, float]
Side = Callable[[], Measured]
Figures = dict[str, Any]
RATE = "jobs_per_s"


class Plan(NamedTuple):
    """How much is measured."""

    rounds: int
    seconds: float  # of a turn, about
    history: int  # jobs before the rounds, where a row is about what they leave behind
    full: bool = False
    quick: bool = False


@dataclass(frozen=True)
class Ratio:
    """The median of the rounds, and its spread."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


class Rounds:
    """What each side measured in each round."""

    def __init__(self, sides: Mapping[str, Side], rounds: int, *shown: str) -> None:
        self._measured: dict[str, list[Measured]] = {name: [] for name in sides}
        names = list(sides)
        for number in range(rounds):
            # Another one goes first in each round, and neighbours stay neighbours.
            first = number % len(names)
            for name in names[first:] + names[:first]:
                self._measured[name].append(sides[name]())
            told = ", ".join(self._told(name, shown or (RATE,)) for name in names)
            print(f"  round {number + 1}: {told}", flush=True)

    def _told(self, side: str, figures: Sequence[str]) -> str:
        last = self._measured[side][-1]
        return " ".join([side, *(f"{last[figure]:.4g}" for figure in figures)])

    def values(self, side: str, figure: str = RATE) -> list[float]:
        return [measured[figure] for measured in self._measured[side]]

    def median(self, side: str, figure: str = RATE) -> float:
        return statistics.median(self.values(side, figure))

    def ratio(self, ours: str, theirs: str, figure: str = RATE) -> Ratio:
        pairs = zip(self.values(ours, figure), self.values(theirs, figure), strict=True)
        found = [our / their for our, their in pairs]
        return Ratio(statistics.median(found), min(found), max(found))

    def rates(self, *sides: str) -> Figures:
        """Medians and rounds of these sides, as they stand in the figures; all of them if none is named."""
        named = sides or tuple(self._measured)
        return {
            "jobs_per_s": {name: round(self.median(name)) for name in named},
            "rounds": {name: [round(value) for value in self.values(name)] for name in named},
        }


def real(**ratios: Ratio) -> Figures:
    """The ratios that users meet, each with its spread."""
    return _with_spread("real", ratios)


def against(ratios: Mapping[str, Ratio]) -> Figures:
    """The ratios to the peers."""
    return _with_spread("ratio", ratios)


def _with_spread(kind: str, ratios: Mapping[str, Ratio]) -> Figures:
    for name, ratio in ratios.items():
        print(f"  {name}: {ratio}", flush=True)
    return {
        kind: {name: round(ratio.median, 2) for name, ratio in ratios.items()},
        "spread": {name: [round(ratio.low, 2), round(ratio.high, 2)] for name, ratio in ratios.items()},
    }


def merge(*parts: Figures) -> Figures:
    """One set of figures; what is a table in several of them becomes one table."""
    whole: Figures = {}
    for part in parts:
        for key, value in part.items():
            whole[key] = {**whole[key], **value} if isinstance(value, dict) and key in whole else value
    return whole
