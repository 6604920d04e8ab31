"""Read a page of offers by CSS class; every count is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.html_events import read_events
from actors.scrape.listing import Listing
from actors.website.storable import one_line

_SECONDS = 5.0
_DEEPEST = 400
_LONGEST = 2000
# Elements that have no end tag: they hold no text, and must not count as open.
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})


@dataclass(frozen=True)
class Fields:
    """CSS classes: of the element that holds the offers, of one offer, and of its parts.

    The offer's own element may carry ``data-id``, ``data-type`` and ``data-currency``; the first link inside it
    is its address, and a ``time`` element's ``datetime`` its date.
    """

    page: str = "listings"
    offer: str = "listing"
    title: str = "title"
    price: str = "price"
    type: str = "type"
    date: str = "date"


@dataclass
class Page:
    """What was found. ``is_listing`` tells an empty list of offers from another page."""

    is_listing: bool = False
    offers: list[Listing] = field(default_factory=list)


def read_listings(html: str, fields: Fields, most: int) -> Page:
    """Read to the end, to ``most`` offers, or for five seconds; never raises."""
    reader = _Reader(fields, most)
    read_events(html, reader, _SECONDS)
    return reader.close()


class _Reader:
    """Takes the parser's events, and must not raise."""

    def __init__(self, fields: Fields, most: int) -> None:
        self.page = Page()
        self.full = False
        self._fields = fields
        self._parts = {fields.title: "title", fields.price: "price", fields.type: "type", fields.date: "date"}
        self._most = most
        self._depth = 0
        self._offer_at = 0
        self._found: dict[str, str] = {}
        self._open: list[tuple[int, str]] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += tag not in _VOID
        if self._depth > _DEEPEST:
            self.full = True
        classes = set(attributes.get("class", "")[:500].split())
        if self._fields.page in classes:
            self.page.is_listing = True
        if self._fields.offer in classes:
            self._end_offer()
            self._offer_at = self._depth
            self._found = {part: attributes.get(f"data-{part}", "") for part in ("id", "type", "currency")}
        if self._offer_at:
            self._enter(tag, attributes, classes)

    def _enter(self, tag: str, attributes: Mapping[str, str], classes: set[str]) -> None:
        if tag == "a" and "href" in attributes:
            self._found.setdefault("url", attributes["href"][:_LONGEST])
        if tag == "time" and "datetime" in attributes:
            self._found.setdefault("date", attributes["datetime"][:40])
        for name in classes & self._parts.keys():
            if not self._found.get(self._parts[name]):
                self._open.append((self._depth, self._parts[name]))

    def end(self, tag: str) -> None:
        if tag in _VOID:
            return
        self._open = [(depth, part) for depth, part in self._open if depth < self._depth]
        if self._offer_at and self._depth <= self._offer_at:
            self._end_offer()
        self._depth = max(self._depth - 1, 0)

    def data(self, text: str) -> None:
        for _, part in self._open:
            self._found[part] = (self._found.get(part, "") + text)[:_LONGEST]

    def close(self) -> Page:
        self._end_offer()
        return self.page

    def _end_offer(self) -> None:
        if self._offer_at and len(self.page.offers) < self._most:
            found = {name: one_line(value, _LONGEST) for name, value in self._found.items()}
            self.page.offers.append(_offer(found))
        self.full = self.full or len(self.page.offers) >= self._most
        self._offer_at, self._found, self._open = 0, {}, []


def _offer(found: Mapping[str, str]) -> Listing:
    return Listing(
        title=found.get("title", ""),
        url=found.get("url", ""),
        price=found.get("price", ""),
        currency=found.get("currency") or None,
        type=found.get("type", ""),
        date=found.get("date", ""),
        external_id=found.get("id") or None,
    )
