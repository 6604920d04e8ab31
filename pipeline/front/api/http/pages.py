"""Lists come in pages; a page says where the next one begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from pipeline.front.api.http.cursors import Place, encode_cursor

Item = TypeVar("Item")
Cursor = Annotated[str | None, Query(max_length=2000, description="`next` of the page before")]
Limit = Annotated[int, Query(ge=1, le=200, description="items a page")]


class Page(BaseModel, Generic[Item]):
    """``next`` is the cursor of the following page, null on the last."""

    items: list[Item]
    next: str | None = Field(default=None, description="cursor of the next page; null on the last one")


def cut(rows: Sequence[Any], limit: int, place: Callable[[Any], Place | tuple[Place, ...]]) -> dict[str, Any]:
    """A page out of ``limit + 1`` rows that were asked for: the extra one only says that there is more."""
    items = list(rows[:limit])
    if len(rows) <= limit:
        return {"items": items, "next": None}
    last = place(items[-1])
    return {"items": items, "next": encode_cursor(*(last if isinstance(last, tuple) else (last,)))}
