"""What may travel with a job: JSON, whole. What JSON cannot say is refused, not changed on the way."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import orjson

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_UUID


def encode(value: Mapping[str, Any]) -> bytes:
    """The JSON of a body or result. Raises ValueError with a sentence about what is not valid JSON."""
    try:
        encoded = orjson.dumps(dict(value), option=OPTIONS)
    except TypeError as error:
        raise ValueError(str(error)) from None
    # orjson writes null for them; nearly all values have none, and are not looked through.
    if b"null" in encoded and _has_no_number(value):
        raise ValueError("NaN and Infinity are not valid JSON")
    return encoded


def _has_no_number(value: object) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(_has_no_number(one) for one in value.values())
    return isinstance(value, list | tuple) and any(_has_no_number(one) for one in value)


def decode(data: bytes | str) -> Any:
    """JSON as it can be passed on: PostgreSQL keeps numbers of any size, and says 1e20 in full.

    What has no room in 64 bits comes back as a float, and what is too large for that as its digits.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data, parse_int=_number)


def _number(digits: str) -> int | float | str:
    if math.isinf(size := float(digits)):
        return digits
    return int(digits) if abs(size) < 2**63 else size
