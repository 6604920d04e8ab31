"""Reading what was fetched without holding up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

Found = TypeVar("Found")

# A page of this size is read in about three milliseconds.
SMALL = 8 * 1024


async def read_in_time(size: int, read: Callable[..., Found], *args: Any) -> Found:
    """``read(*args)``, which takes time in proportion to ``size`` bytes: at once if they are few, else in a thread."""
    if size <= SMALL:
        return read(*args)
    return await asyncio.to_thread(read, *args)
