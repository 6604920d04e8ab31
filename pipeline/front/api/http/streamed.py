"""A body that comes in over the network, read by code that waits for it in a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from anyio import from_thread


def pieces(stream: AsyncIterator[bytes]) -> Iterator[bytes]:
    """The pieces as they come. To be used in a worker thread of the event loop that serves the request.

    >>> @router.put("/v1/parcels/list")
    ... def upload(_: Operator, request: Request) -> int:
    ...     allow_body(request, 1_000_000_000)
    ...     return sum(len(piece) for piece in pieces(request.stream()))
    """

    async def next_piece() -> bytes | None:
        return await anext(stream, None)

    while (piece := from_thread.run(next_piece)) is not None:
        yield piece
