"""Numbers as people group them: ``1,234.50``, ``1.234,50``, ``1 234,5``, ``1'234.-``, ``12,34,567``."""

from __future__ import annotations

import re
from decimal import Decimal

# Written decimals (a lone dash for none) end a number; so does the Indian "/-".
PATTERN = (
    r"(?:\d{1,3}(?: \d{3})+(?!\d)(?:[.,]\d{1,2}(?!\d))?|\d+(?:['.,٫]\d+)*|[.,]\d{1,2}(?!\d))"
    r"(?:[.,:] ?[-=]{1,2}(?!\d)|/-|[.,](?![\d\w]))?"
)
_TAIL = re.compile(r"(?:[.,:] ?[-=]{1,2}|/-|[.,])$")
LONGEST = 24


class BadNumber(ValueError):
    """Digits and separators that no country writes like this."""


def read_number(text: str, places: int | None = None, comma: bool = False) -> Decimal:
    """The number. ``places``: decimals of its currency, if known; ``comma``: its people write a decimal comma."""
    plain = _TAIL.sub("", text)
    if len(plain) > LONGEST:
        raise BadNumber(f"{plain[:40]!r} is too long")
    whole, sign, rest = _split(plain, places, comma)
    if not _is_grouped(whole):
        raise BadNumber(f"{plain!r} is grouped as nobody does")
    digits = re.sub(r"\D", "", whole) or "0"
    return Decimal(f"{digits}.{rest}" if sign else digits)


def _split(plain: str, places: int | None, comma: bool) -> tuple[str, str, str]:
    """The whole part, the decimal sign and the decimals."""
    at = max(plain.rfind(sign) for sign in ".,٫")
    if at < 0:
        return plain, "", ""
    whole, sign, rest = plain[:at], plain[at], plain[at + 1 :]
    # Two different signs, and the last one is there once: it is the decimal one, however many digits follow.
    mixed = sign not in whole and re.search(r"['., ]", whole) is not None
    if sign not in whole and (mixed or sign == "٫" or _is_decimal(whole, sign, rest, places, comma)):
        return whole, sign, rest
    return plain, "", ""


def _is_decimal(whole: str, sign: str, rest: str, places: int | None, comma: bool) -> bool:
    """Before three digits a lone sign groups thousands, unless no digit, a zero or many precede it."""
    if len(rest) != 3 or len(whole) > 3 or whole in {"", "0"}:
        return True
    return places == 3 and sign == ("," if comma else ".")


def _is_grouped(whole: str) -> bool:
    """No groups at all; or a short first one, then all of three digits, or of two (Indian) with three at the end."""
    parts = re.split(r"['., ]", whole)
    if len(parts) == 1:
        return True
    if len(set(re.findall(r"['., ]", whole))) > 1 or not 1 <= len(parts[0]) <= 3 or len(parts[-1]) != 3:
        return False
    middle = {len(part) for part in parts[1:-1]}
    return middle <= {3} or (middle <= {2} and len(parts[0]) <= 2)
