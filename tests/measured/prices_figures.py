"""Measures the reading of prices on the labelled set: ``python -m tests.measured.prices_figures``."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

from actors.scrape.price.reading import Reading, Unread, read
from tests.measured.test_sets import HALVES, Row, rows


@dataclass
class Figures:
    """Of one half. ``unread`` and ``wrong`` name each case by its id."""

    half: str
    total: int = 0
    right: int = 0
    unread: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    currencies: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        share = 100 * len(self.unread) / self.total
        named = ", ".join(f"{code} {count}" for code, count in self.currencies.most_common())
        return [
            f"{self.half}: {self.total} texts, {self.right} right, {len(self.unread)} unread ({share:.1f} %), "
            f"{len(self.wrong)} wrong",
            *(f"  unread {name}: {why}" for name, why in self.unread.items()),
            *(f"  wrong {name}: {why}" for name, why in self.wrong.items()),
            f"  {len(self.currencies)} currencies read right: {named}",
        ]


def measure(half: str) -> Figures:
    """Read every text of the half once. A text without an amount is read right if it is refused."""
    figures = Figures(half)
    for row in rows("prices", half):
        figures.total += 1
        try:
            _judge(figures, row, read(row["text"], row["market_currency"] or None))
        except Unread as reason:
            if row["kind"] == "unreadable":
                figures.right += 1
            else:
                figures.unread[row["id"]] = str(reason)
    return figures


def _judge(figures: Figures, row: Row, found: Reading) -> None:
    """A currency that stays unknown where there is one to know keeps the price aside: unread, not wrong."""
    expected = Reading(
        row["kind"],
        row["currency"] or None,
        int(row["quantity"]),
        *(Decimal(row[name]) if row[name] else None for name in ("amount", "low", "high")),
    )
    if found == expected:
        figures.right += 1
        figures.currencies[found.currency or "unknown"] += 1
    elif found.currency is None and found == Reading(**{**vars(expected), "currency": None}):
        figures.unread[row["id"]] = "unknown currency"
    else:
        figures.wrong[row["id"]] = f"{row['form']}: read {_short(found)}, meant {_short(expected)}"


def _short(reading: Reading) -> str:
    amount = f"{reading.low} to {reading.high}" if reading.kind == "range" else str(reading.amount)
    return f"{reading.kind} {amount} {reading.currency or '?'} x {reading.quantity}"


if __name__ == "__main__":
    for name in sys.argv[1:] or HALVES:
        print("\n".join(measure(name).lines()))
