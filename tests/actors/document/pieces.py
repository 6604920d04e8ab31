"""A document as it comes over the network."""

from __future__ import annotations

from collections.abc import AsyncIterator


async def in_pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
