"""A typed workflow in each of the three ways to run a phase. A real worker imports this module."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from uuid import UUID

from pydantic import BaseModel, HttpUrl

from pipeline import Done, Job, Workflow


class Tone(Enum):
    LOUD = "loud"
    QUIET = "quiet"


class Audit(BaseModel):
    customer: UUID
    url: HttpUrl
    tone: Tone = Tone.QUIET
    wrong: str = ""


class Price(BaseModel):
    amount: Decimal
    at: datetime


class Report(BaseModel):
    url: HttpUrl
    customer: UUID
    total: Decimal
    until: datetime
    links: list[str]


audit = Workflow("typed-audit", body=Audit, result=Report)


@audit.phase
async def crawl(job: Job[Audit]) -> list[str]:
    assert isinstance(job.body, Audit)
    return [str(job.body.url), job.body.tone.value]


@audit.phase
def price(job: Job[Audit], crawl: list[str]) -> list[Price]:
    assert crawl[1] == job.body.tone.value
    if job.body.wrong:
        return [job.body.wrong]  # type: ignore[list-item]  # what a mistaken phase returns
    return [Price(amount=Decimal("0.10"), at=datetime(2026, 11, 18, tzinfo=UTC))] * 3


@audit.phase(isolated=True)
def publish(job: Job[Audit], crawl: list[str], price: list[Price]) -> Done[Report]:
    total = sum((one.amount for one in price), Decimal(0))
    until = max(one.at for one in price) + timedelta(days=1)
    return Done(Report(url=job.body.url, customer=job.body.customer, total=total, until=until, links=crawl))
