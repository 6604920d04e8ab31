"""Coin prices: a job is one intake at one source; when all of an intake are final, its valuation follows."""

from __future__ import annotations

from actors.scrape.price_collection import price_collection as collect_prices
from actors.scrape.valuation import valuation as value_intake
from pipeline import Limit, Workflow, exponential

BASE_DELAY_MINUTES = 1

scrape = Workflow("scrape")
value = Workflow("valuation")

# A source's rate is that of its row in sources; a job asks for its permit only if the cache does not know the answer.
# base_delay_minutes * 2^retry_count, at most a day.
price_collection = scrape.phase(
    "price-collection",
    pool=10,
    time_limit=120.0,
    backoff=exponential(60.0 * BASE_DELAY_MINUTES),
    limit=Limit("source:{source_id}", calls=0),
)(collect_prices)
valuation = value.phase("valuation", pool=10, time_limit=60.0)(value_intake)
