"""Prices as marketplaces write them, in cents, and in one currency. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal

from actors.scrape.price.currencies import decimals
from actors.scrape.price.reading import Reading, Unread, read

CURRENCY = "USD"
# Fixed reference rates (US dollars for one unit), rounded, of the day below and not of today: the same listing has the
# same cents on every day.
REFERENCE_RATES = {"USD": 1.0, "EUR": 1.1, "GBP": 1.27, "CHF": 1.13, "CAD": 0.73, "AUD": 0.65, "JPY": 0.0067}
REFERENCE_DAY = date(2023, 11, 30)
LARGEST = 10**13  # cents; more than any coin, and far from what a bigint holds


@dataclass(frozen=True)
class Price:
    """An amount in the smallest unit of its own currency (cents; whole yen)."""

    cents: int
    currency: str


class NoPrice(ValueError):
    """There is no price here that could be used. ``reason`` is one of few, to be counted."""

    def __init__(self, message: str, reason: str = "no price") -> None:
        super().__init__(message)
        self.reason = reason


def read_price(text: str, currency: str | None = None) -> Price:
    """``"1.234,50 €"``, ``"US$ 1,234.50"``, ``"CHF 1'234"``; ``currency`` is the market's own."""
    return settled(read_text(text, currency))


def read_text(text: str, market: str | None = None, row: str | None = None) -> Reading:
    """What the text says; raises NoPrice with the reason if that is not certain."""
    try:
        return read(text, market, row)
    except Unread as unread:
        raise NoPrice(f"{unread} in {text[:40]!r}", unread.reason) from None


def settled(reading: Reading) -> Price:
    """The whole amount of a reading that has one, in a currency that is known; raises NoPrice otherwise."""
    if reading.amount is None:
        raise NoPrice(f"a range from {reading.low} to {reading.high}", "range")
    if reading.currency is None:
        raise NoPrice(f"{reading.amount} of an unknown currency", "unknown currency")
    return price(reading.amount, reading.currency)


def price(amount: Decimal, currency: str) -> Price:
    """``amount`` units of ``currency``; raises NoPrice unless it is above zero and of bearable size."""
    if not amount.is_finite() or not 0 < amount < LARGEST // 100:
        raise NoPrice(f"{amount} is not the price of a coin", "size")
    cents = int((amount * 10 ** decimals(currency)).to_integral_value(ROUND_HALF_EVEN))
    if cents < 1:
        raise NoPrice(f"{amount} {currency} is less than a cent", "size")
    return Price(cents, currency)


def in_reference_cents(found: Price, rates: Mapping[str, float], quantity: int = 1) -> int:
    """One of ``quantity`` pieces in US cents at the reference rate; raises NoPrice for a currency without one."""
    if found.currency not in rates:
        raise NoPrice(f"no reference rate for {found.currency}: add it to SCRAPE_RATES", "no rate")
    cents = Decimal(found.cents) * 100 / 10 ** decimals(found.currency) / quantity
    cents = (cents * Decimal(str(rates[found.currency]))).to_integral_value(ROUND_HALF_EVEN)
    if not 1 <= cents <= LARGEST:
        raise NoPrice(f"{found.cents} {found.currency} is not the price of a coin", "size")
    return int(cents)
