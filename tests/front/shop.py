"""A typed workflow, for the doors: its bodies are orders."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import StrEnum

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from pipeline import Job, Workflow


class Speed(StrEnum):
    slow = "slow"
    quick = "quick"


class Line(BaseModel):
    sku: str
    count: int = 1


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    order: int = Field(ge=1, description="Its number in the shop.")
    note: str = ""
    price: Decimal | None = None
    speed: Speed = Speed.slow
    gift: bool = False
    deliver_on: date | None = None
    placed_at: AwareDatetime | None = Field(None, strict=True)
    lines: list[Line] = []
    main_line: Line | None = Field(None, alias="mainLine")


shop_orders = Workflow("shop-orders", body=Order)


@shop_orders.phase
def count_lines(job: Job[Order]) -> int:
    return len(job.body.lines)


@shop_orders.phase(pool=4)
def name_lines(job: Job[Order], count_lines: int) -> list[str]:
    return [line.sku for line in job.body.lines] or [f"none of {count_lines}"]
