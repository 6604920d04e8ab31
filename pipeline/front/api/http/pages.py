"""Lists come in pages; a page says where the next one begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from pipeline.front.api.http.cursors import Place, encode_cursor

Item = TypeVar("Item")
Cursor = Annotated[str | None, Query(max_length=2000, description="`next` of the page before")]
"""The type of an endpoint's argument: where the page before ended. Read it with ``decode_cursor``.

>>> @router.get("/v1/parcels/by-number")
... def numbers(_: Viewer, cursor: Cursor = None) -> Page[int]:
...     [after] = decode_cursor(cursor, int) or (0,)
...     return Page(items=[after + 1])
"""
Limit = Annotated[int, Query(ge=1, le=200, description="items a page")]
"""The type of an endpoint's argument: how many items a page has, 1 to 200.

>>> @router.get("/v1/parcels/first")
... def first(_: Viewer, limit: Limit = 50) -> list[int]:
...     return list(range(limit))
"""


class Page(BaseModel, Generic[Item]):
    """``next`` is the cursor of the following page, null on the last."""

    items: list[Item]
    next: str | None = Field(default=None, description="cursor of the next page; null on the last one")


def cut(rows: Sequence[Any], limit: int, place: Callable[[Any], Place | tuple[Place, ...]]) -> dict[str, Any]:
    """A page out of ``limit + 1`` rows that were asked for: the extra one only says that there is more.

    >>> page = cut([3, 5, 8], limit=2, place=lambda row: row)
    >>> page["items"], decode_cursor(page["next"], int)
    ([3, 5], (5,))
    """
    items = list(rows[:limit])
    if len(rows) <= limit:
        return {"items": items, "next": None}
    last = place(items[-1])
    return {"items": items, "next": encode_cursor(*(last if isinstance(last, tuple) else (last,)))}
