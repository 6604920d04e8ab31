"""A market whose prices no reader can all know."""

from __future__ import annotations

import asyncio

from actors.scrape.price_collection import price_collection
from pipeline.declare.job import NOBODY
from pipeline.store import database
from tests.actors.scrape.stall import Stall


def test_a_market_that_writes_in_every_way_costs_no_wrong_price(quiet: Stall) -> None:
    """W4's writings over HTTP: read right, or kept aside with the reason."""
    quiet.source("odd", adapter="listing-page")
    done = asyncio.run(price_collection(quiet.job(NOBODY, quiet.intake(), "odd")))
    with database.engine().begin() as connection:
        done.execute(connection)
    aside = quiet.place.rows("SELECT price_text, reason FROM unread_prices")
    assert {row["price_text"]: row["reason"] for row in aside} == {
        "120 kr": "unknown currency",
        "₹1,200": "no rate",
        "HK$100": "no rate",
        "Lot of 3: $45.00": "unknown currency",
        "US $10.00 to US $25.00": "range",
        "¥12,000": "unknown currency",
        "price on request": "no amount",
    }
    rows = quiet.place.rows("SELECT original_cents, currency, approximate FROM price_points WHERE currency <> 'CHF'")
    assert {tuple(row.values()) for row in rows} == {
        (3499, "CAD", False),
        (105_000, "GBP", False),
        (12_000, "USD", False),
        (8000, "EUR", True),
        (6400, "GBP", False),
    }
