"""How jobs of one workflow that share a key go beside each other, as plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.declare.phase import read_rate

FIELD = re.compile(r"[^.\s]{1,100}(\.[^.\s]{1,100}){0,4}")


@dataclass(frozen=True)
class Turns:
    """The keys of a workflow go round: each gets one job a turn.

    ``field``: where the key is in the body, such as ``customer`` or ``customer.id``. ``per_key``: how many jobs of a
    key are under way at once. ``rate``: how many of them begin, such as ``"5/s"``. ``in_order``: one after the other,
    the oldest first; the next one begins when the one before it has ended.
    """

    field: str
    per_key: int | None = None
    rate: str | None = None
    in_order: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.field, str) or FIELD.fullmatch(self.field) is None:
            raise ValueError(f"key is the name of a field of the body, such as 'customer', not {self.field!r}")
        if self.per_key is not None and (isinstance(self.per_key, bool) or self.per_key < 1):
            raise ValueError(f"per_key is one job or more, not {self.per_key!r}")
        if self.in_order and self.per_key not in (None, 1):
            raise ValueError(f"in_order means one job of a key at a time: per_key={self.per_key} contradicts it")
        read_rate(self.rate)

    def options(self) -> dict[str, object]:
        """As the database has them."""
        rate = read_rate(self.rate)
        return {
            "field": self.field,
            "per_key": 1 if self.in_order else self.per_key,
            "in_order": self.in_order,
            "rate_count": rate.count if rate else None,
            "rate_seconds": rate.seconds if rate else None,
        }


def check_field(turns: Turns, schema: Mapping[str, Any] | None) -> None:
    """ValueError if bodies with this JSON Schema have no such field: all their jobs would share one key."""
    if schema is None or (named := schema.get("properties")) is None or schema.get("additionalProperties") is True:
        return
    first = turns.field.split(".")[0]
    if first not in named:
        raise ValueError(f"the body has no field {first!r} to be its key; its fields: {', '.join(sorted(named))}")
