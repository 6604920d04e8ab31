"""What a marketplace says about one offer, before and after it is made comparable."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

# Archives of auctions are not older, and clocks of markets are not a day wrong.
LEAST, AHEAD = datetime(1900, 1, 1, tzinfo=UTC), timedelta(days=1)
PRICE_TYPES = ("sold", "ask", "bid")
_SYNONYMS = {
    "sold": "sold",
    "realized": "sold",
    "realised": "sold",
    "completed": "sold",
    "ask": "ask",
    "asking": "ask",
    "offer": "ask",
    "listed": "ask",
    "buy-now": "ask",
    "fixed": "ask",
    "bid": "bid",
    "auction": "bid",
    "current-bid": "bid",
}


@dataclass(frozen=True)
class Listing:
    """One offer as the source gives it: texts, not yet judged. Travels through the cache as JSON."""

    title: str
    url: str
    price: str
    currency: str | None = None
    type: str = ""
    date: str = ""
    external_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Intake:
    """The coin that is to be priced."""

    id: str
    title: str
    year: int | None = None
    mintmark: str | None = None
    denomination: str | None = None
    series: str | None = None

    @property
    def query(self) -> str:
        """The words to search for, each once."""
        parts = [str(self.year or ""), self.mintmark or "", self.denomination or "", self.series or "", self.title]
        return " ".join(dict.fromkeys(" ".join(parts).split()))[:300]

    def cache_key(self, source_id: str) -> str:
        """The seed's key: ``source_id|year|mintmark|denomination|series|title``; a bar within a part is escaped."""
        parts = (source_id, self.year, self.mintmark, self.denomination, self.series, self.title)
        return "|".join("" if part is None else _escaped(str(part)) for part in parts)


def _escaped(part: str) -> str:
    return part.replace("\\", "\\\\").replace("|", "\\|")


@dataclass(frozen=True)
class PricePoint:
    """One offer made comparable; a row of ``price_points``."""

    dedupe_key: str
    external_id: str | None
    title: str
    url: str
    price_cents: int
    original_cents: int
    currency: str
    price_type: str
    observed_at: datetime
    match_strength: float
    quantity: int = 1  # pieces that ``original_cents`` pays for; ``price_cents`` is one of them
    approximate: bool = False
    rate_day: date | None = None  # of the rate that made the cents; None: no conversion was needed

    def as_row(self) -> Mapping[str, Any]:
        day = self.rate_day and self.rate_day.isoformat()
        return {**asdict(self), "observed_at": self.observed_at.isoformat(), "rate_day": day}


@dataclass(frozen=True)
class Unpriced:
    """An offer whose price could not be used, with the reason; a row of ``unread_prices``."""

    title: str
    url: str
    price_text: str
    reason: str
    detail: str


def price_type(word: str) -> str | None:
    """``sold``, ``ask`` or ``bid`` for a marketplace's own word; None if it means none of them."""
    return _SYNONYMS.get(unicodedata.normalize("NFKC", word).strip().lower().replace(" ", "-").replace("_", "-"))


def moment(text: str, seen: datetime) -> datetime:
    """When a listing says that it was made, in UTC; ``seen`` where it does not, or says what cannot be."""
    return dated(text, seen) or seen.astimezone(UTC)


def dated(text: str, seen: datetime) -> datetime | None:
    """A date or time in UTC (one without a zone is taken as UTC); None if it cannot be read, or is still to come.

    ISO, the dates of mails, and dates whose month is a word or whose year comes first: in 03/11/2024 nobody knows.
    """
    for read in (datetime.fromisoformat, parsedate_to_datetime, _written):
        try:
            found = read(text.strip())
            found = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, OverflowError):
            continue
        return found if LEAST <= found <= seen + AHEAD else None
    return None


def _written(text: str) -> datetime:
    words = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b|[.,]", " ", text[:60])
    for form in ("%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y", "%Y/%m/%d", "%Y %m %d"):
        try:
            return datetime.strptime(" ".join(words.split()), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(text)
