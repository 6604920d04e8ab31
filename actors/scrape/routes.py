"""``/v1/sources``: the marketplaces that are scraped, their unread prices, and pausing and resuming them by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from actors.scrape import sources as scraped
from pipeline import BadInput
from pipeline.api import Operator, Viewer, not_found, problems, transaction

router = APIRouter(prefix="/v1/sources", tags=["sources"], responses=problems(401, 403, 503))
SourceId = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,60}$")]


class Source(BaseModel):
    """A marketplace: its breaker, its pauses, its waiting jobs."""

    id: str
    name: str
    adapter: str
    base_url: str
    enabled: bool
    state: str = Field(description="closed, open, half-open, probing, paused or disabled")
    rate_limit_per_minute: float
    currency: str | None = Field(description="of prices that name none, or only a sign of several currencies")
    failure_streak: int
    waiting: int = Field(description="jobs that wait for this source")
    unread: int = Field(description="prices that could not be read, up to 10,000")
    paused_until: datetime | None
    pause_reason: str | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    last_error: str | None
    times_opened: int
    probes: int


class UnreadPrice(BaseModel):
    """A price that was kept aside, with the reason."""

    intake_id: str
    title: str
    url: str
    price_text: str
    reason: str
    detail: str
    first_seen_at: datetime
    last_seen_at: datetime


class UnreadPrices(BaseModel):
    """How many for each reason, and those that were seen last."""

    reasons: dict[str, int]
    prices: list[UnreadPrice]


class Pause(BaseModel):
    """How long; without seconds, until the source is resumed."""

    seconds: float | None = Field(None, gt=0, le=366 * 86400, allow_inf_nan=False)


@router.get("")
def list_sources(_: Viewer) -> list[Source]:
    """All sources by name."""
    with transaction() as connection:
        return [Source(**row) for row in scraped.list_sources(connection)]


@router.get("/{source_id}/unread", responses=problems(404, 422))
def unread(
    source_id: SourceId,
    _: Viewer,
    reason: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> UnreadPrices:
    """Prices of the source that could not be read for certain: counts by reason, and the latest."""
    with transaction() as connection:
        _exists(connection, source_id)
        reasons, prices = scraped.unread_prices(connection, source_id, reason, limit)
    return UnreadPrices(reasons=reasons, prices=[UnreadPrice(**price) for price in prices])


@router.post("/{source_id}/pause", responses=problems(404, 409, 422))
def pause(source_id: SourceId, _: Operator, wish: Pause | None = None) -> Source:
    """Hold the source's jobs: they wait at no cost."""
    with transaction() as connection:
        _exists(connection, source_id)
        return Source(**scraped.pause_source(connection, source_id, wish.seconds if wish else None))


@router.post("/{source_id}/resume", responses=problems(404, 409, 422))
def resume(source_id: SourceId, _: Operator) -> Source:
    """End the source's pause, also the breaker's; its jobs go out at its rate."""
    with transaction() as connection:
        _exists(connection, source_id)
        return Source(**scraped.resume_source(connection, source_id))


def _exists(connection: Any, source_id: str) -> None:
    try:
        scraped.find_source(connection, source_id)
    except BadInput:
        raise not_found("source", source_id) from None
