"""A shop's workflow, as an application would declare and test it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import Connection, Engine

from pipeline import Done, Job, Permanent, Snooze, Transient, Workflow, open_batch, seal_batch, submit_many


def shipped(engine: Engine) -> int:
    with engine.connect() as db:
        return int(db.exec_driver_sql("SELECT count(*) FROM shipped").scalar_one())


class Order(BaseModel):
    order: int
    amount: Decimal = Decimal("9.50")


@dataclass
class Gateway:
    """The outside world of the test."""

    down: int = 0
    charged: list[str] = field(default_factory=list)

    def charge(self, key: str) -> str:
        self.charged.append(key)
        if self.down:
            self.down -= 1
            raise Transient("the gateway is down")
        return f"receipt {len(set(self.charged))}"


gateway = Gateway()

orders = Workflow("kit-orders", body=Order, result=dict[str, Decimal])


@orders.phase
def charge(job: Job[Order]) -> str:
    return gateway.charge(job.idempotency_key)


@orders.phase
async def pack(job: Job[Order], charge: str) -> Decimal:
    await job.progress(1, 1)
    return job.body.amount * 2


@orders.phase(isolated=True)
def ship(job: Job[Order], charge: str, pack: Decimal) -> Done[dict[str, Decimal]]:
    def write(db: Connection) -> None:
        db.exec_driver_sql("INSERT INTO shipped (job) VALUES (?)", (str(job.id),))

    return Done({"shipped": pack}, write=write)


parts = Workflow("kit-parts")


@parts.phase(max_attempts=1)
def make(job: Job) -> int:
    if job.body["n"] == 2:
        raise Permanent("no such part")
    return int(job.body["n"])


reports = Workflow("kit-reports")


@reports.phase
def report(job: Job) -> Any:
    return job.body["batch"]


def order_parts(numbers: list[int]) -> UUID:
    """Code under test: it submits by itself."""
    batch = open_batch(None, then="kit-reports")
    submit_many(None, "kit-parts", [{"n": n} for n in numbers], batch=batch)
    seal_batch(None, batch)
    return batch


limited = Workflow("kit-limited")


@limited.phase(shared_limit=True, time_limit=30)
def call(job: Job) -> str:
    if job.attempt == 1 and job.fence == 1 and job.body.get("refused"):
        raise Snooze(120, "retry_after", asked=True)
    return str(job.body.get("name", ""))
