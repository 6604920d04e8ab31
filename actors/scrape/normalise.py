"""From what a marketplace wrote to rows that can be compared. Pure: the time of seeing is a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from urllib.parse import urlsplit

from actors.scrape.dedupe import dedupe_key, strongest, usable_id
from actors.scrape.listing import Intake, Listing, PricePoint, moment, price_type
from actors.scrape.match import match_strength
from actors.scrape.money import NoPrice, in_reference_cents, read_price
from actors.website.storable import one_line

LONGEST_URL = 2000


def price_points(
    listings: Iterable[Listing], intake: Intake, rates: Mapping[str, float], seen: datetime
) -> list[PricePoint]:
    """The usable listings, each once. One without price, title, type or address tells nothing and is left out."""
    found = (price_point(listing, intake, rates, seen) for listing in listings)
    return strongest(point for point in found if point is not None)


def price_point(listing: Listing, intake: Intake, rates: Mapping[str, float], seen: datetime) -> PricePoint | None:
    """The listing made comparable; None if it cannot be."""
    title, url, kind = one_line(listing.title, 300), one_line(listing.url, LONGEST_URL), price_type(listing.type)
    try:
        price = read_price(listing.price, listing.currency)
        cents = in_reference_cents(price, rates)
        usable = urlsplit(url).scheme in {"http", "https"} and len(listing.url) <= LONGEST_URL
    except (NoPrice, ValueError):
        return None
    if not title or kind is None or not usable:
        return None
    observed, external_id = moment(listing.date, seen), usable_id(listing.external_id)
    key = dedupe_key(
        external_id=external_id, url=url, title=title, price_cents=cents, observed_at=observed, price_type=kind
    )
    return PricePoint(
        dedupe_key=key,
        external_id=external_id,
        title=title,
        url=url,
        price_cents=cents,
        original_cents=price.cents,
        currency=price.currency,
        price_type=kind,
        observed_at=observed,
        match_strength=match_strength(intake, title),
    )
