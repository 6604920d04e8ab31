"""What may be said of the keys of a workflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from pipeline import Workflow
from pipeline.declare.waits.turns import Turns


class Body(BaseModel):
    customer: str


@dataclass
class Record:
    customer: str


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key": ""}, "key is the name of a field"),
        ({"key": "a b"}, "key is the name of a field"),
        ({"key": 7}, "key is the name of a field"),
        ({"key": "customer", "per_key": 0}, "per_key is one job or more"),
        ({"key": "customer", "per_key": True}, "per_key is one job or more"),
        ({"key": "customer", "per_key": 2, "in_order": True}, "contradicts"),
        ({"key": "customer", "per_key_rate": "fast"}, "is not a rate"),
        ({"per_key": 2}, "need a key"),
        ({"in_order": True}, "need a key"),
        ({"per_key_rate": "1/s"}, "need a key"),
        ({"key": "custmer", "body": Body}, "no field 'custmer'.*customer"),
        ({"key": "custmer", "body": Record}, "no field 'custmer'"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_declared(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Workflow("turns-refused", **options)


def test_a_rate_of_a_key_is_stored_as_jobs_in_seconds() -> None:
    assert Turns("customer", per_key=2, rate="100/min").options() == {
        "field": "customer",
        "per_key": 2,
        "in_order": False,
        "rate_count": 1,
        "rate_seconds": 0.6,
    }
    assert Turns("customer.id", in_order=True).options()["per_key"] == 1
