"""Prices as marketplaces write them, in cents, and in one currency. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

CURRENCY = "USD"
# Fixed reference rates (US dollars for one unit), not today's: the same listing has the same cents on every day.
REFERENCE_RATES = {"USD": 1.0, "EUR": 1.1, "GBP": 1.27, "CHF": 1.13, "CAD": 0.73, "AUD": 0.65, "JPY": 0.0067}
WITHOUT_CENTS = frozenset({"JPY"})
LARGEST = 10**13  # cents; more than any coin, and far from what a bigint holds

_SIGNS = {"US$": "USD", "C$": "CAD", "A$": "AUD", "$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
_NUMBER = re.compile(r"\d[\d.,'\u2019\s]{0,30}")
_CODE = re.compile(r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])")


@dataclass(frozen=True)
class Price:
    """An amount in the smallest unit of its own currency (cents; whole yen)."""

    cents: int
    currency: str


class NoPrice(ValueError):
    """There is no price here that could be used."""


def read_price(text: str, currency: str | None = None) -> Price:
    """``"1.234,50 €"``, ``"US$ 1,234.50"``, ``"CHF 1'234"``; ``currency`` is used where the text names none."""
    found = _NUMBER.search(text[:100])
    if found is None:
        raise NoPrice(f"no number in {text[:40]!r}")
    named = _currency(text[:100]) or (currency or CURRENCY).upper()
    return price(_decimal(found.group()), named)


def price(amount: Decimal, currency: str) -> Price:
    """``amount`` units of ``currency``; raises NoPrice unless it is above zero and of bearable size."""
    digits = 1 if currency in WITHOUT_CENTS else 100
    if not amount.is_finite() or not 0 < amount < LARGEST // 100:
        raise NoPrice(f"{amount} is not the price of a coin")
    cents = int((amount * digits).to_integral_value(ROUND_HALF_EVEN))
    if cents < 1:
        raise NoPrice(f"{amount} {currency} is less than a cent")
    return Price(cents, currency)


def in_reference_cents(found: Price, rates: Mapping[str, float]) -> int:
    """The price in US cents at the reference rate; raises NoPrice for a currency without one."""
    if found.currency not in rates:
        raise NoPrice(f"no reference rate for {found.currency}: add it to SCRAPE_RATES")
    units = Decimal(found.cents) * (1 if found.currency not in WITHOUT_CENTS else 100)
    cents = int((units * Decimal(str(rates[found.currency]))).to_integral_value(ROUND_HALF_EVEN))
    if not 1 <= cents <= LARGEST:
        raise NoPrice(f"{found.cents} {found.currency} is not the price of a coin")
    return cents


def _currency(text: str) -> str | None:
    for sign, code in _SIGNS.items():
        if sign in text:
            return code
    named = _CODE.search(text)
    return named.group() if named else None


def _decimal(digits: str) -> Decimal:
    """The last of ``.`` and ``,`` is the decimal sign if one or two digits follow it, or a lone zero precedes it."""
    plain = re.sub(r"[\s'\u2019]", "", digits).rstrip(".,")
    whole, sign, rest = _last_sign(plain)
    if sign and (len(rest) in {1, 2} or whole == "0"):
        return Decimal(f"{re.sub(r'[.,]', '', whole)}.{rest}")
    return Decimal(re.sub(r"[.,]", "", plain))


def _last_sign(plain: str) -> tuple[str, str, str]:
    at = max(plain.rfind("."), plain.rfind(","))
    return (plain, "", "") if at < 0 else (plain[:at], plain[at], plain[at + 1 :])
