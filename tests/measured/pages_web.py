"""The web of one labelled page, over HTTP on loopback: every host name leads here, and https is taken for http."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import httpcore

from pipeline.http.pinned import VettedBackend
from tests.measured.test_sets import Row

LOOPBACK = "127.0.0.1"


def same(url: str) -> str:
    """Chromium escapes a bar in a path, the URL standard leaves it."""
    return url.replace("|", "%7C")


def body_of(row: Row, folder: Path) -> bytes:
    """The bytes of an answer."""
    return (folder / row["file"]).read_bytes() if "file" in row else b""


@asynccontextmanager
async def serving(row: Row, folder: Path) -> AsyncIterator[None]:
    """While the block lasts, this process's fetches reach the row's answers and nothing else."""
    web = Web([row], folder)
    http, https = [await asyncio.start_server(web.of(scheme), LOOPBACK, 0) for scheme in ("http", "https")]
    ports = {scheme: server.sockets[0].getsockname()[1] for scheme, server in (("http", http), ("https", https))}

    async def connect(
        _: VettedBackend, host: str, port: int, *_unused: Any, **_named: Any
    ) -> httpcore.AsyncNetworkStream:
        scheme = web.scheme_of(host, port)
        stream = await httpcore.AnyIOBackend().connect_tcp(LOOPBACK, ports[scheme])
        return Untold(stream)

    with patch.object(VettedBackend, "connect_tcp", connect):
        yield
    for server in (http, https):
        server.close()


class Untold(httpcore.AsyncNetworkStream):
    """A connection on which nothing is encrypted, whatever is said about that."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(self, *_: Any, **_named: Any) -> httpcore.AsyncNetworkStream:
        return self

    def get_extra_info(self, info: str) -> Any:
        return None if info == "ssl_object" else self._stream.get_extra_info(info)


class Web:
    """The answers of some rows. Those that ask for a cookie come first."""

    def __init__(self, pages: Iterable[Row], folder: Path) -> None:
        answers = [answer for page in pages for answer in (page, *page.get("resources", []))]
        self._rows = sorted(answers, key=lambda one: "if_cookie" not in one)
        self._folder = folder

    def scheme_of(self, host: str, port: int) -> str:
        """443 is always https; of other ports the row knows."""
        if port in (80, 443):
            return "https" if port == 443 else "http"
        named = (urlsplit(one["url"]) for one in self._rows)
        return next((url.scheme for url in named if (url.hostname, url.port) == (host, port)), "http")

    def of(self, scheme: str) -> Any:
        """The server of a scheme: one request a connection."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            url = f"{scheme}://{headers['host']}{first.split()[1]}"
            writer.write(b"".join(self._answer(url, headers.get("cookie", ""))))
            await writer.drain()
            writer.close()

        return serve

    def _answer(self, url: str, cookie: str) -> Iterable[bytes]:
        found: Row = {"status": 404, "headers": {}}
        for one in self._rows:
            wanted = one.get("if_cookie")
            if same(one["url"]) == same(url) and (not wanted or wanted in cookie):
                found = one
                break
        body = body_of(found, self._folder)
        yield f"HTTP/1.1 {found['status']} {HTTPStatus(found['status']).phrase}\r\n".encode()
        yield from (f"{name}: {value}\r\n".encode() for name, value in found["headers"].items())
        yield b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        yield body
