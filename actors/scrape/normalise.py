"""From what a marketplace wrote to rows that can be compared. Pure: the time of seeing is a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from urllib.parse import urlsplit

from actors.scrape.dedupe import dedupe_key, strongest, usable_id
from actors.scrape.listing import Intake, Listing, PricePoint, Unpriced, dated, moment, price_type
from actors.scrape.match import match_strength
from actors.scrape.money import CURRENCY, REFERENCE_DAY, NoPrice, in_reference_cents, read_text, settled
from actors.website.storable import one_line

LONGEST_URL = 2000


@dataclass(frozen=True)
class Market:
    """What a price needs beside its text: the market's own currency, and rates with the day they are of."""

    rates: Mapping[str, float]
    currency: str | None = None
    rates_day: date = REFERENCE_DAY


def sort_out(
    listings: Iterable[Listing], intake: Intake, market: Market, seen: datetime
) -> tuple[list[PricePoint], list[Unpriced]]:
    """The usable listings, each once; and those that cannot be used, each with its reason."""
    points: list[PricePoint] = []
    aside: dict[Unpriced, None] = {}
    for listing in listings:
        try:
            points.append(price_point(listing, intake, market, seen))
        except NoPrice as why:
            url, told = one_line(listing.url, LONGEST_URL), one_line(listing.price, 400)
            aside[Unpriced(one_line(listing.title, 300), url, told, why.reason, one_line(str(why), 300))] = None
    return strongest(points), list(aside)


def is_offer(listing: Listing) -> bool:
    """Whether it has all that an offer has beside its price."""
    return not _missing(listing)


def undated(listings: Iterable[Listing], seen: datetime) -> int:
    """How many have a date that cannot be read or is still to come; they count as seen now."""
    return sum(bool(listing.date.strip()) and dated(listing.date, seen) is None for listing in listings)


def price_points(
    listings: Iterable[Listing], intake: Intake, rates: Mapping[str, float], seen: datetime
) -> list[PricePoint]:
    """The usable listings of a market without a currency of its own."""
    return sort_out(listings, intake, Market(rates), seen)[0]


def price_point(listing: Listing, intake: Intake, market: Market, seen: datetime) -> PricePoint:
    """The listing made comparable; raises NoPrice if it is not an offer, or if its price cannot be used."""
    if missing := _missing(listing):
        raise NoPrice(f"{missing}: this is not an offer", missing)
    title, url, kind = one_line(listing.title, 300), one_line(listing.url, LONGEST_URL), price_type(listing.type) or ""
    reading = read_text(listing.price, market.currency, listing.currency)
    price = settled(reading)
    cents = in_reference_cents(price, market.rates, reading.quantity)
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
        quantity=reading.quantity,
        approximate=reading.kind == "approximate",
        rate_day=None if price.currency == CURRENCY else market.rates_day,
    )


def _missing(listing: Listing) -> str:
    """What an offer needs and this one does not have, as a reason; empty if it is one."""
    if not one_line(listing.title, 300):
        return "no title"
    if price_type(listing.type) is None:
        return "unknown type" if listing.type.strip() else "no type"
    try:
        on_the_web = urlsplit(one_line(listing.url, LONGEST_URL)).scheme in {"http", "https"}
    except ValueError:
        on_the_web = False
    return "" if on_the_web and len(listing.url) <= LONGEST_URL else "no address"
