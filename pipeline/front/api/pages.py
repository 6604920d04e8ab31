"""Lists come in pages. The cursor says where the next one begins; it is opaque, and a forged one is refused."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

import orjson
from fastapi import Query
from pydantic import BaseModel, Field

from pipeline.front.api.problem import Problem

Item = TypeVar("Item")
Cursor = Annotated[str | None, Query(max_length=2000, description="`next` of the page before")]
Limit = Annotated[int, Query(ge=1, le=200, description="items a page")]
Place = str | int


class Page(BaseModel, Generic[Item]):
    """``next`` is the cursor of the following page, null on the last."""

    items: list[Item]
    next: str | None = Field(default=None, description="cursor of the next page; null on the last one")


def encode_cursor(*place: Place) -> str:
    """Where a page ended, for example the id of its last item."""
    return urlsafe_b64encode(orjson.dumps(place)).rstrip(b"=").decode()


def decode_cursor(cursor: str | None, *kinds: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    """The place in a cursor, each part read by its kind (``UUID``, ``str``, ``int`` …). None without a cursor."""
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


def cut(rows: Sequence[Any], limit: int, place: Callable[[Any], Place | tuple[Place, ...]]) -> dict[str, Any]:
    """A page out of ``limit + 1`` rows that were asked for: the extra one only says that there is more."""
    items = list(rows[:limit])
    if len(rows) <= limit:
        return {"items": items, "next": None}
    last = place(items[-1])
    return {"items": items, "next": encode_cursor(*(last if isinstance(last, tuple) else (last,)))}
