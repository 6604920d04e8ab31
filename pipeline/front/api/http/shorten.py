"""Bounds for what is shown of data that others wrote."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

STRING = 4000
ITEMS = 200
DEPTH = 12


def shorten(value: Any, depth: int = DEPTH) -> Any:
    """The same value as plain JSON, with long texts, long lists and deep nesting cut, and marked as cut."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= STRING else f"{value[:STRING]}… ({len(value)} characters)"
    if depth == 0:
        return "…"
    if isinstance(value, dict):
        kept = {str(name)[:200]: shorten(part, depth - 1) for name, part in list(value.items())[:ITEMS]}
        return kept if len(value) <= ITEMS else {**kept, "…": f"{len(value)} entries"}
    if isinstance(value, list | tuple | set):
        kept_items = [shorten(part, depth - 1) for part in list(value)[:ITEMS]]
        return kept_items if len(value) <= ITEMS else [*kept_items, f"… ({len(value)} items)"]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else shorten(str(value))
