"""An HTTP server on loopback that answers every request after a second, however many there are."""

from __future__ import annotations

import asyncio
import sys

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
SECONDS = 1.0


class Slow(asyncio.Protocol):
    """One request a connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"\r\n\r\n"):
            asyncio.get_running_loop().call_later(SECONDS, self._answer)

    def _answer(self) -> None:
        self._transport.write(ANSWER)
        self._transport.close()


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Slow, "127.0.0.1", int(sys.argv[1]), backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
