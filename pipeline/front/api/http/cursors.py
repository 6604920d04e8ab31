"""A cursor says where a page ended or which group is meant; it is opaque, and a forged one is refused."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import orjson

from pipeline.front.api.http.problem import Problem

Place = str | int


def encode_cursor(*place: Place) -> str:
    """Where a page ended, for example the id of its last item."""
    return urlsafe_b64encode(orjson.dumps(place)).rstrip(b"=").decode()


def decode_cursor(cursor: str | None, *kinds: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    """The place in a cursor, each part read by its kind (``UUID``, ``str``, ``int`` …). None without a cursor.

    >>> decode_cursor("forged", int)
    Traceback (most recent call last):
    pipeline.front.api.http.problem.Problem: cursor: it is not one that this list gave out; begin again without it
    """
    if cursor is None:
        return None
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        parts = orjson.loads(raw)
        if not isinstance(parts, list) or len(parts) != len(kinds):
            raise ValueError("wrong number of parts")
        return tuple(kind(part) for kind, part in zip(kinds, parts, strict=True))
    except (ValueError, TypeError, AttributeError, OverflowError):
        detail = "cursor: it is not one that this list gave out; begin again without it"
        raise Problem(422, "Not valid", detail, errors=[{"where": "query.cursor", "what": detail}]) from None


def plain_text(part: Any) -> str:
    """A part of a cursor that PostgreSQL takes as text."""
    if not isinstance(part, str) or "\x00" in part:
        raise ValueError("not a text")
    return part


def whole_number(part: Any) -> int:
    """A part of a cursor that is a number."""
    if type(part) is not int:
        raise ValueError("not a number")
    return part
