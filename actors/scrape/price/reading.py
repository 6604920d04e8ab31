"""From the amounts of a text to one price, a range, an approximate price, or a reason why not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from actors.scrape.price.currencies import SWISS, Mark, code_of, decimals
from actors.scrape.price.numerals import BadNumber, read_number
from actors.scrape.price.roles import Finder
from actors.scrape.price.tokens import LONGEST, clean, tokens
from actors.scrape.price.view import Amount, Found

# £1 10s 6d: money of before 1971
_SHILLINGS = re.compile(r"£ ?\d.*\b\d{1,2} ?s\b|\b\d{1,2} ?s\.?,? ?\d{1,2} ?d\b")
_COMMA = frozenset({"TND", "LYD"})
# The amounts to be preferred, best first. Those of no group are never the price.
_PREFERRED = (("now", "sold", "gross"), ("",), ("net",), ("start",), ("each",), ("estimate", "about"))
_APPROXIMATE = frozenset({"estimate", "about"})
_NEVER = {
    "post": "shipping only",
    "extra": "an addition only",
    "fee": "a fee only",
    "was": "a former price only",
    "saved": "a discount only",
    "off": "a discount only",
    "open": "only a bound of the price",
    "other": "not the price of the item",
}


class Unread(ValueError):
    """The text says no price for certain. ``reason`` is one of few, to be counted; the message says more."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


@dataclass(frozen=True)
class Reading:
    """What a text says. ``kind``: price, approximate, range (``low`` and ``high``). No currency: it is unknown."""

    kind: str
    currency: str | None
    quantity: int = 1
    amount: Decimal | None = None
    low: Decimal | None = None
    high: Decimal | None = None


@dataclass(frozen=True)
class _Value:
    value: Decimal
    currency: str | None
    source: Amount


def read(text: str, market: str | None = None, row: str | None = None) -> Reading:
    """Read a price text. ``row`` is the currency that the listing names, ``market`` the one of its marketplace."""
    if len(text) > LONGEST:
        raise Unread("too long", f"{len(text)} characters")
    if row and code_of(row) is None:
        raise Unread("unknown currency", f"the listing names {row[:20]!r}")
    own, plain = code_of(row) or code_of(market), clean(text)
    if _SHILLINGS.search(plain):
        raise Unread("unclear", "shillings and pence")
    found = Finder(tokens(plain)).find()
    if found.odd:
        raise Unread("unclear", found.odd[0])
    reading = _reading(found, own)
    if row and reading.currency not in {None, own}:
        raise Unread("contradiction", f"the text says {reading.currency}, the listing {own}")
    return reading


def _reading(found: Found, own: str | None) -> Reading:
    marked = _with_marks(found)
    ranges = _ranges(found.amounts)
    chosen = _chosen(marked)
    values = [_value(amount, own) for amount in chosen]
    rounded = chosen[0].rounded or any(mark.thousands for mark in chosen[0].marks)
    kind = "approximate" if rounded or chosen[0].role in _APPROXIMATE else "price"
    quantity = _quantity(found, chosen)
    joined = [pair for pair in ranges if pair[0] in chosen and pair[1] in chosen]
    if joined:
        return _range(joined, values, chosen, quantity)
    value = _one(values, found, own)
    if value.value <= 0:
        raise Unread("zero", str(value.value))
    return Reading(kind, value.currency, quantity, amount=value.value)


def _with_marks(found: Found) -> list[Amount]:
    """The amounts that have a currency, or the only number there is; raises Unread for numbers that may be anything."""
    if not found.amounts:
        raise Unread("no amount", "no number that could be a price")
    marked = [amount for amount in found.amounts if amount.marks]
    if any(not mark.minor for amount in marked for mark in amount.marks):
        marked = [amount for amount in marked if not any(mark.minor for mark in amount.marks)]
    partners = [amount for pair in _ranges(found.amounts) for amount in pair if pair[0].marks or pair[1].marks]
    bare = [amount for amount in found.amounts if not amount.marks]
    if marked:
        for amount in bare:
            if amount not in partners and not _is_harmless(amount):
                raise Unread("unclear", f"what is the number {amount.text!r} beside the price?")
        return [amount for amount in found.amounts if amount in marked or amount in partners]
    if found.loose_marks:
        raise Unread("unclear", "the currency stands at no number")
    if found.strange:
        raise Unread("unclear", f"a number beside {found.strange[0]!r}, without a currency")
    if len(bare) > 1 and len(_ranges(bare)) != len(bare) - 1:
        raise Unread("several prices", "several numbers without a currency")
    return bare


def _is_harmless(amount: Amount) -> bool:
    """A year or an id: four digits or more, ungrouped."""
    plain = amount.text.rstrip(".,")
    counts = amount.rounded or amount.times > 1
    return plain.isdigit() and (len(plain) >= 4 or plain == "1") and not counts


def _ranges(amounts: list[Amount]) -> list[tuple[Amount, Amount]]:
    """Neighbours with one joining sign or word between them, of the same role."""
    return [(a, b) for a, b in pairwise(amounts) if b.joined and a.role == b.role]


def _chosen(marked: list[Amount]) -> list[Amount]:
    for roles in _PREFERRED:
        fitting = [amount for amount in marked if amount.role in roles]
        if fitting:
            return fitting
    raise Unread("no price", _NEVER.get(marked[0].role, "no amount is the price"))


def _value(amount: Amount, own: str | None) -> _Value:
    if amount.unclear:
        raise Unread("unclear", f"letters or numbers beside {amount.text!r} that may belong to it")
    mark = _mark(amount)
    currency = mark.resolve(own) if mark else own
    if mark is not None and not mark.any_of:
        raise Unread("unknown currency", "two currencies at one number, or one of no country")
    try:
        value = read_number(amount.text, decimals(currency) if currency else None, currency in _COMMA)
    except BadNumber as error:
        raise Unread("bad number", str(error)) from None
    value = value * amount.times * (1000 if mark and mark.thousands else 1) + amount.plus
    return _Value(value / 100 if mark and mark.minor else value, currency, amount)


def _mark(amount: Amount) -> Mark | None:
    if not amount.marks:
        return None
    first, *others = amount.marks
    for other in others:
        first = first & other
    is_swiss = "'" in amount.text or amount.text.endswith((".-", ".--"))
    return SWISS if is_swiss and "CHF" in first.any_of and "XAF" in first.any_of else first


def _quantity(found: Found, chosen: list[Amount]) -> int:
    if any(amount.role == "each" for amount in chosen):
        return 1
    if len(found.quantities) > 1 or 0 in found.quantities:
        raise Unread("unclear", f"several quantities: {sorted(found.quantities)}")
    return next(iter(found.quantities), 1)


def _range(joined: list[tuple[Amount, Amount]], values: list[_Value], chosen: list[Amount], quantity: int) -> Reading:
    """``£800-1,200``: one mark is enough for both."""
    if len(joined) > 1 or len(chosen) > 2 or any(amount.rounded for amount in chosen):
        raise Unread("unclear", "a range beside other amounts")
    low, high = (next(value for value in values if value.source is amount) for amount in joined[0])
    named = {value.currency for value in (low, high) if value.source.marks} or {low.currency}
    if len(named) > 1 or low.value >= high.value:
        raise Unread("unclear", "a range from more to less, or of two currencies")
    return Reading("range", named.pop(), quantity, low=low.value, high=high.value)


def _one(values: list[_Value], found: Found, own: str | None) -> _Value:
    """The price among amounts of equal rank."""
    first, *others = values
    others = [other for other in others if (other.value, other.currency) != (first.value, first.currency)]
    if not others:
        return first
    foreign = all(other.currency != first.currency for other in others)
    if foreign and (first.currency == own or all(other.source.depth > first.source.depth for other in others)):
        return first
    if len(others) == 1 and not foreign and len(found.shares) == 1:
        low, high = sorted((first, others[0]), key=lambda value: value.value)
        if abs(high.value * (100 - found.shares[0]) / 100 - low.value) <= max(high.value / 100, Decimal("0.02")):
            return low
    raise Unread("several prices", ", ".join(str(value.value) for value in values[:4]))
