"""A workflow that waits for a decision of a known type, for the doors."""

from __future__ import annotations

from pydantic import BaseModel

from pipeline import Job, Workflow


class Decision(BaseModel):
    yes: bool
    note: str = ""


shop_returns = Workflow("shop-returns")


@shop_returns.phase
def ask(job: Job) -> Decision | None:
    return job.wait_for("decided")


@shop_returns.phase
def act(job: Job, ask: Decision | None) -> bool:
    return ask is not None and ask.yes
