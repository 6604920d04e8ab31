"""Workflows whose jobs take turns by a key, for tests of keys alone."""

from __future__ import annotations

import time
from typing import Any

from typing_extensions import TypedDict

from pipeline import Done, Job, Workflow
from tests.actions import ledger, record
from tests.workflows import QUICK


class Order(TypedDict, total=False):
    customer: str
    number: int
    seconds: float


fair = Workflow("fair", body=Order, key="customer")
shared = Workflow("shared", body=Order, key="customer", per_key=2)
ordered = Workflow("ordered", body=Order, key="customer", in_order=True)
dripping = Workflow("dripping", body=Order, key="customer", per_key_rate="5/s")


def _act(job: Job[Any]) -> Done:
    record(job)
    time.sleep(job.body.get("seconds", 0))
    return ledger(job)


fair_act = fair.phase("act", backoff=QUICK)(_act)
shared_first = shared.phase("first", backoff=QUICK)(_act)
shared_second = shared.phase("second", backoff=QUICK)(_act)
ordered_act = ordered.phase("act", backoff=QUICK)(_act)
dripping_act = dripping.phase("act", backoff=QUICK)(_act)
