"""Phase price-collection: ask one source about one coin, and keep each price it names once."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import NoReturn

from sqlalchemy import text

from actors.reading import read_in_time
from actors.scrape.adapters import Adapter, Unparsable, adapter_for
from actors.scrape.breaker import SourceFault, guarded
from actors.scrape.config import ScrapeSettings
from actors.scrape.listing import Listing
from actors.scrape.normalise import Market, is_offer, sort_out, undated
from actors.scrape.store import save_points
from actors.scrape.task import Source, Task, load_task
from pipeline import Done, Job, Permanent, Snooze, engine, retry_after
from pipeline.http.client import Fetched, fetch
from pipeline.http.refusals import still_packed

BUSY = frozenset({408, 425})
# Calls to a source are seconds apart. A kept connection that its server closes in that very moment would look like
# a failure of the source, and five of them like a sick one.
FRESH = {"Connection": "close"}
PAUSE = text("SELECT source_pause(:source, now() + make_interval(secs => :seconds), 'retry_after')")


class Limited(Exception):
    """The source asked for rest (429); it is not sick."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"429, rest of {seconds:.0f} s")
        self.seconds = seconds


async def price_collection(job: Job) -> Done:
    """Keep what the source says about the intake; waits at no cost while the source may not be asked."""
    settings = ScrapeSettings()
    task = await load_task(job)
    listings = await asyncio.to_thread(known, task, settings)
    cached = listings is not None
    if listings is None:
        listings = await ask(job, task, settings)
    market = Market(settings.rates, task.source.currency, settings.rates_day)
    # Five hundred offers take fifty milliseconds.
    points, aside = await asyncio.to_thread(sort_out, listings, task.intake, market, task.seen)
    result = {"source": task.source.name, "listings": len(listings), "points": len(points), "cached": cached}
    result["unread"] = Counter(one.reason for one in aside)
    result["undated"] = undated(listings, task.seen)
    result["cut"] = len(listings) >= settings.max_listings
    return Done(result=result, write=save_points(job.id, task, points, aside))


def known(task: Task, settings: ScrapeSettings) -> list[Listing] | None:
    """What the source said within the cache's time. A job with parameters of its own is not in the seed's key."""
    if task.params or settings.cache is None:
        return None
    kept = settings.cache.get(task.intake.cache_key(task.source.id))
    try:
        return None if kept is None else [Listing(**item) for item in kept]
    except TypeError:  # written by another version
        return None


async def ask(job: Job, task: Task, settings: ScrapeSettings) -> list[Listing]:
    """Wait for a permit of the source's rate limit, then call it under its breaker."""
    adapter = adapter_for(task.source.adapter)
    try:
        await job.limit(task.source.rate_limit)
        async with guarded(task.source, job, settings):
            answer = await call(job, task, adapter, settings)
            listings = await read_in_time(len(answer.body), read, adapter, answer, settings)
    except Limited as limited:
        await rest(task, limited)
    except Snooze as wait:
        raise task.at_the_gate(wait) from None
    if settings.cache is not None and not task.params:
        key = task.intake.cache_key(task.source.id)
        await asyncio.to_thread(settings.cache.set, key, [listing.as_json() for listing in listings])
    return listings


async def rest(task: Task, limited: Limited) -> NoReturn:
    """Nobody asks the source before its time; it was no failure."""
    await asyncio.to_thread(pause, task.source, limited.seconds)
    why = f"source {task.source.name} answered {limited}"
    raise task.at_the_gate(Snooze(limited.seconds, "retry_after", why, asked=True)) from None


def pause(source: Source, seconds: float) -> None:
    """Of the source, for all workers."""
    with engine().begin() as connection:
        connection.execute(PAUSE, {"source": source.id, "seconds": seconds})


async def call(job: Job, task: Task, adapter: Adapter, settings: ScrapeSettings) -> Fetched:
    """One request; a status that is no success is raised as what it means for the source."""
    answer = await fetch(
        adapter.address(task.source.base_url, task.intake, task.params),
        policy=settings.address_policy,
        limits=settings.limits,
        headers={"User-Agent": settings.user_agent, "traceparent": job.traceparent, **FRESH},
    )
    if answer.status == 429:
        asked = retry_after(answer.headers.get("retry-after"), datetime.now(UTC))
        raise Limited(settings.limited_seconds if asked is None else asked)
    if answer.status >= 500 or answer.status in BUSY:
        raise SourceFault(f"{answer.url_final} answered {answer.status}")
    if answer.status == 206 or still_packed(answer.headers):
        raise SourceFault(f"{answer.url_final} answered with a part, or packed in a way that was not asked for")
    if not 200 <= answer.status < 300:
        raise Permanent(f"source {task.source.name}: {answer.url_final} answered {answer.status}")
    return answer


def read(adapter: Adapter, answer: Fetched, settings: ScrapeSettings) -> list[Listing]:
    """The offers; whatever an adapter stumbles over in the answer makes it unparsable, and so do offers of no shape."""
    try:
        listings = adapter.read(answer, settings.max_listings)
    except Unparsable:
        raise
    except Exception as error:
        raise Unparsable(f"{adapter.name} cannot read {answer.url_final}: {type(error).__name__}: {error}") from error
    if listings and not any(map(is_offer, listings)):
        raise Unparsable(
            f"none of the {len(listings)} offers of {answer.url_final} has a title, a type and an address: has the "
            "market changed its answers?"
        )
    return listings
