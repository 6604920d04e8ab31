"""Keys in memory: phases run one after the other, so that only the order within a key is to be kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from pipeline.testing.memory.rows import Row


def in_turn(unfinished: Iterable[Row]) -> list[Row]:
    """Without those that wait until an older job of their key has ended. Given in the order in which they were made."""
    seen: set[tuple[str, str]] = set()
    found = []
    for row in unfinished:
        turns = row.workflow.turns
        if turns is not None and turns.in_order:
            key = (row.workflow.name, key_in(row.body, turns.field))
            if key in seen:
                continue
            seen.add(key)
        found.append(row)
    return found


@lru_cache(maxsize=10_000)
def key_in(body: str, field: str) -> str:
    """As pipeline.key_in, but for a key's length."""
    value = json.loads(body)
    for part in field.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
