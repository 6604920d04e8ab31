"""Make what the web sent fit for PostgreSQL: jsonb takes neither NUL, nor half characters, nor infinity."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_NOT_STORABLE = re.compile(r"[\x00\ud800-\udfff]")
_SPACES = re.compile(r"\s+")


def clean(text: str) -> str:
    """``text`` without the characters that cannot be stored."""
    return _NOT_STORABLE.sub("", text)


def one_line(text: str, longest: int) -> str:
    """``text`` cleaned, with single spaces, and no longer than ``longest`` characters."""
    return _SPACES.sub(" ", clean(text)).strip()[:longest].rstrip()


def load_json(text: str) -> Any:
    """Parse JSON into what can be stored; raises ValueError for anything else, also for deep nesting."""
    try:
        return storable(json.loads(text, parse_float=_finite, parse_constant=_no_constant))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _no_constant(_: str) -> None:
    return None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def storable(value: Any) -> Any:
    """``value`` without what PostgreSQL cannot keep."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): storable(item) for key, item in value.items()}
    return value
