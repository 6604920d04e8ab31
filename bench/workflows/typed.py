"""The same chain twice: with a model as its body and typed results, and with dictionaries."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from pipeline import Job, Workflow


class Wish(BaseModel):
    text: str


class Price(BaseModel):
    amount: Decimal
    at: datetime


AT = datetime(2026, 1, 1, tzinfo=UTC)
typed = Workflow("typed", body=Wish)
untyped = Workflow("untyped")


@typed.phase
def one(job: Job[Wish]) -> list[Price]:
    return [Price(amount=Decimal(len(job.body.text)), at=AT)]


@typed.phase
def two(job: Job[Wish], one: list[Price]) -> Price:
    return Price(amount=one[0].amount + 1, at=one[0].at)


@typed.phase
def three(job: Job[Wish], one: list[Price], two: Price) -> Decimal:
    return two.amount - one[0].amount


@untyped.phase("one")
def first(job: Job) -> Any:
    return [{"amount": str(len(job.body["text"])), "at": AT.isoformat()}]


@untyped.phase("two")
def second(job: Job) -> Any:
    before = job.results["one"][0]
    return {"amount": str(Decimal(before["amount"]) + 1), "at": before["at"]}


@untyped.phase("three")
def third(job: Job) -> Any:
    return str(Decimal(job.results["two"]["amount"]) - Decimal(job.results["one"][0]["amount"]))
