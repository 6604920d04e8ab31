"""How each kind of source is asked and read. A new source is one small class here or in a module of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode, urljoin

from actors.scrape.html_listing import Fields, read_listings
from actors.scrape.listing import Intake, Listing
from actors.website.encoding import decode
from actors.website.storable import load_json
from pipeline import Permanent
from pipeline.http.client import Fetched

ADAPTERS: dict[str, Adapter] = {}


class Unparsable(Exception):
    """The source answered with something that is no list of offers. Counts as a failure of the source."""


class Adapter(ABC):
    """Where to ask and how to read the answer. Stateless; ``name`` is what ``sources.adapter`` says."""

    name: ClassVar[str]
    path: ClassVar[str]
    query: ClassVar[str] = "q"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            ADAPTERS[cls.name] = cls()

    def address(self, base_url: str, intake: Intake, params: Mapping[str, Any]) -> str:
        """The address to ask for the intake; ``params`` are the job's own query parameters."""
        asked = {str(name)[:60]: str(value)[:200] for name, value in list(params.items())[:20]}
        return f"{base_url.rstrip('/')}{self.path}?{urlencode({**asked, self.query: intake.query})}"

    @abstractmethod
    def read(self, answer: Fetched, most: int) -> list[Listing]:
        """At most ``most`` offers of the answer; none is a fine answer. Raises Unparsable."""


class HtmlAdapter(Adapter):
    """A page of offers. ``fields`` names the CSS classes of one offer and of its parts."""

    fields: ClassVar[Fields] = Fields()

    def read(self, answer: Fetched, most: int) -> list[Listing]:
        page = read_listings(decode(answer.body, answer.headers.get("content-type", "")).text, self.fields, most)
        if not page.is_listing:
            raise Unparsable(f"{answer.url_final} has no element of class {self.fields.page!r}: not a page of offers")
        return [_at(answer.url_final, offer) for offer in page.offers]


class JsonAdapter(Adapter):
    """A JSON API: an object whose ``items`` are objects, one an offer."""

    items: ClassVar[str] = "items"

    def read(self, answer: Fetched, most: int) -> list[Listing]:
        try:
            found = load_json(answer.body.decode("utf-8"))
        except ValueError as error:
            raise Unparsable(f"{answer.url_final} is not JSON: {str(error)[:200]}") from None
        items = found.get(self.items) if isinstance(found, dict) else None
        if not isinstance(items, list):
            raise Unparsable(f"{answer.url_final} has no list {self.items!r}")
        offers = [self.offer(item) for item in items[:most] if isinstance(item, dict)]
        return [_at(answer.url_final, offer) for offer in offers]

    @abstractmethod
    def offer(self, item: Mapping[str, Any]) -> Listing:
        """One item as an offer; missing parts stay empty."""


class ListingPage(HtmlAdapter):
    """Search pages in the usual shape; see docs/scraping.md for the classes."""

    name = "listing-page"
    path = "/search"


class ItemsApi(JsonAdapter):
    """``{"items": [{"id", "title", "url", "price": {"value", "currency"}, "type", "date"}]}``."""

    name = "items-api"
    path = "/api/items"

    def offer(self, item: Mapping[str, Any]) -> Listing:
        paid = item.get("price")
        value, currency = (paid.get("value"), paid.get("currency")) if isinstance(paid, dict) else (paid, None)
        return Listing(
            title=_text(item.get("title")),
            url=_text(item.get("url")),
            # A number of JSON has a decimal point: with four decimals no reader takes it for one of thousands.
            price=f"{value:.4f}" if isinstance(value, float) else _text(value),
            currency=_text(currency) or None,
            type=_text(item.get("type")),
            date=_text(item.get("date")),
            external_id=_text(item.get("id")) or None,
        )


def adapter_for(name: str) -> Adapter:
    """The adapter that a source names; raises Permanent with those that exist."""
    if name not in ADAPTERS:
        raise Permanent(f"there is no adapter {name!r}: sources.adapter must be one of {', '.join(sorted(ADAPTERS))}")
    return ADAPTERS[name]


def _text(value: object) -> str:
    return str(value)[:2000] if isinstance(value, str | int | float) else ""


def _at(base: str, offer: Listing) -> Listing:
    try:
        url = urljoin(base, offer.url)
    except ValueError:
        url = ""
    return Listing(**{**offer.as_json(), "url": url})
