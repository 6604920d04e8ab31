"""Dates as precise as their source gives them, and how two of them agree. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_ISO = re.compile(r"([+-]?\d{1,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ]\d.*)?)?)?")
_GERMAN = re.compile(r"(?:(\d{1,2})\.\s*)?(\d{1,2})\.\s*(\d{3,4})")
_YEAR = re.compile(r"(?<!\d)(\d{3,4})(?!\d)")
_ANCIENT_YEAR = re.compile(r"(?<!\d)(\d{1,4})(?!\d)")
_BEFORE_CHRIST = re.compile(r"\b(bc|bce|v\. ?chr|av\. ?j)", re.IGNORECASE)

Agreement = Literal["day", "month", "year", "near", "unsure", "conflict"]
# What Wikidata's numbers for precision mean; below a year they say how many years the date covers.
_SPANS = {8: 10, 7: 100, 6: 1000}


@dataclass(frozen=True)
class When:
    """A year, perhaps a month, perhaps a day. ``span`` is in years: 10 means some year of that decade."""

    year: int
    month: int | None = None
    day: int | None = None
    span: int = 1

    def __str__(self) -> str:
        parts = [f"{self.year}", *(f"{n:02}" for n in (self.month, self.day) if n)]
        return "-".join(parts) if self.span == 1 else f"about {self.year}"


def read_date(text: object) -> When | None:
    """A date as people write it: 1828, 1828-09-09, 9.9.1828, c. 1828, 44 BC. None if it is no date."""
    said = str(text).strip()[:60] if isinstance(text, str | int) and not isinstance(text, bool) else ""
    if found := _ISO.fullmatch(said):
        return _checked(*(int(part) if part else None for part in found.groups()))
    if found := _GERMAN.fullmatch(said):
        day, month, year = found.groups()
        return _checked(int(year), int(month), int(day) if day else None)
    # Anything else may mean day or month first: only its year is certain.
    ancient = bool(_BEFORE_CHRIST.search(said))
    years = (_ANCIENT_YEAR if ancient else _YEAR).findall(said)
    return When(-int(years[0]) if ancient else int(years[0])) if len(years) == 1 else None


def from_wikidata(value: object) -> When | None:
    """Wikidata's time value: ``+1828-09-09T00:00:00Z`` with a precision from 11 (day) downwards."""
    match value:
        case {"time": str(time), "precision": int(precision)}:
            found = _ISO.fullmatch(time[:40])
            if not found or precision < min(_SPANS):
                return None
            year, month, day = (int(part) if part else None for part in found.groups())
            when = _checked(year, month if precision >= 10 else None, day if precision >= 11 else None)
            return when and When(when.year, when.month, when.day, _SPANS.get(precision, 1))
    return None


def agree(one: When, other: When) -> Agreement:
    """How far two dates agree; the same whichever comes first."""
    apart = abs(one.year - other.year)
    span = max(one.span, other.span)
    if span > 1:
        return "unsure" if apart <= span else "conflict"
    if apart:
        return "near" if apart == 1 else "conflict"
    if None in (one.month, other.month) or one.month != other.month:
        # Same year, other month: often the old calendar, or a christening for a birth.
        return "year"
    return "day" if one.day and one.day == other.day else "month"


def _checked(year: int | None, month: int | None = None, day: int | None = None) -> When | None:
    if year is None or abs(year) > 9999:
        return None
    month = month if month and 1 <= month <= 12 else None
    day = day if month and day and 1 <= day <= 31 else None
    return When(year, month, day)
