"""The world at its worst, byte by byte: every client ends in time, with a reason, and takes no rubbish for an answer."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import httpx
import pytest

from actors.document.config import DocumentSettings
from actors.document.registry import Registry
from actors.match.config import MatchSettings
from actors.match.queries import Query
from actors.match.wikidata import SlowDown, Wikidata
from actors.website import robots
from actors.website.chat import ModelEndpoint, ask
from actors.website.config import WebsiteSettings
from actors.website.messages import Message
from actors.website.visit import fetch_page
from pipeline import Permanent, Snooze, Transient

SECONDS = 0.5
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PAGE = b"<h1>Part</h1><p>the first bytes"
NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
SESSION = b"HTTP/1.1 200 OK\r\nSet-Cookie: s=1\r\nContent-Length: 0\r\n\r\n"
Send = Callable[[asyncio.StreamWriter], Awaitable[None]]


def once(answer: bytes) -> Send:
    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return send


def for_ever(head: bytes, piece: bytes, pause: float = 0.0) -> Send:
    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return send


def full(body: bytes, headers: bytes = b"", status: bytes = b"200 OK") -> Send:
    head = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n" % (status, len(body))
    return once(head + headers + b"\r\n" + body)


def asked_to_wait(value: bytes) -> Send:
    return full(b"", b"Retry-After: %s\r\n" % value, b"429 Too Many Requests")


BOMB = gzip.compress(bytes(100_000_000), 1)
HOSTILE: dict[str, Send] = {
    "a body without end": for_ever(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + bytes(65_536) + b"\r\n"),
    "headers without end": for_ever(OK, b"X-A: " + b"b" * 1000 + b"\r\n"),
    "interim answers without end": for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "a byte at a time": for_ever(OK + b"\r\n", b"a", 0.2),
    "a bomb": full(BOMB, b"Content-Encoding: gzip\r\n"),
    "a bomb in a bomb": full(gzip.compress(BOMB), b"Content-Encoding: gzip, gzip\r\n"),
    "packed as nobody asked": full(PAGE, b"Content-Encoding: zstd\r\n"),
    "not packed at all": full(PAGE, b"Content-Encoding: gzip\r\n"),
    "half a package": full(gzip.compress(os.urandom(3000))[:1500], b"Content-Encoding: gzip\r\n"),
    "a part": full(PAGE, b"Content-Range: bytes 0-30/9000\r\n", b"206 Partial Content"),
    "nothing": once(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "less than promised": once(OK + b"Content-Length: 500\r\n\r\n" + PAGE),
    "two lengths": once(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"),
    "a length below zero": once(OK + b"Content-Length: -5\r\n\r\nabcdef"),
    "a length of many digits": once(OK + b"Content-Length: 999999999999999999999\r\n\r\nabcdef"),
    "chunks of no size": once(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc"),
    "noise": once(os.urandom(5000)),
    "no header": once(PAGE),
    "a status of no kind": full(b"", status=b"999 No"),
    "a redirect to nowhere": full(b"", status=b"302 Found"),
    "a redirect to a file": full(b"", b"Location: file:///etc/passwd\r\n", b"302 Found"),
    "a redirect inside": full(b"", b"Location: http://169.254.169.254/latest\r\n", b"302 Found"),
    "a redirect to itself": full(b"", b"Location: /again\r\n", b"302 Found"),
    "a redirect of many letters": full(b"", b"Location: /" + b"a" * 60_000 + b"\r\n", b"302 Found"),
    "a wait of nothing": asked_to_wait(b"0"),
    "a wait of for ever": asked_to_wait(b"9" * 40),
    "a wait until the end of time": asked_to_wait(b"Fri, 31 Dec 9999 23:59:59 GMT"),
    "a wait until long ago": asked_to_wait(b"Mon, 01 Jan 0001 00:00:00 +1400"),
    "a wait of no number": asked_to_wait(b"1e400"),
}
JSON: dict[str, bytes] = {
    "deep": b"[" * 100_000,
    "a number of many digits": b'{"documents": %s}' % (b"9" * 10_000),
    "not a number": b'{"search": NaN, "entities": Infinity, "documents": NaN, "choices": NaN}',
    "other types": b'{"search": {"a": 1}, "entities": [1], "documents": {"a": [1]}, "choices": {"0": 1}}',
    "other items": b'{"search": [1, null, []], "entities": 3, "documents": [1, null, []], "choices": [1]}',
    "other parts": b'{"search": [{"id": 5}], "documents": [{"number": "N", "pdf": {}}], "choices": [{"message": []}]}',
    "no address": b'{"search": [{}], "documents": [{"number": "N", "pdf": "http://["}], "choices": [{"message": 1}]}',
    "nothing": b"null",
}


@asynccontextmanager
async def serving(send: Send) -> AsyncIterator[int]:
    """A port where this is the answer; robots.txt is missing, and a login is accepted."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            first = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
            known = {b"robots.txt": NOTHING, b"/login": SESSION}
            answer = next((known[name] for name in known if name in first), None)
            await (send if answer is None else once(answer))(writer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def website(port: int) -> object:
    robots.forget()
    settings = WebsiteSettings(total_seconds=SECONDS, ports=frozenset({port}), allow_private=True)
    return await fetch_page(f"http://127.0.0.1:{port}/x", settings)


async def model(port: int) -> object:
    return await ask(
        ModelEndpoint(f"http://127.0.0.1:{port}/v1", "m", seconds=SECONDS), [Message(role="user", content="x")]
    )


async def registry(port: int) -> object:
    account = {"REGISTRY_URL": f"http://127.0.0.1:{port}", "REGISTRY_USER": "u", "REGISTRY_PASSWORD": "p"}
    return await Registry(DocumentSettings.model_validate({**account, "total_seconds": SECONDS})).find("N")


async def searching(port: int) -> object:
    settings = MatchSettings(url=f"http://127.0.0.1:{port}/w/api.php", seconds=SECONDS)
    return await Wikidata(settings).search(Query("begins", "x"), "en")


async def entities(port: int) -> object:
    settings = MatchSettings(url=f"http://127.0.0.1:{port}/w/api.php", seconds=SECONDS)
    return await Wikidata(settings).entities(["Q1"], ["en"])


CLIENTS = (website, model, registry, searching, entities)
# With a meaning for the job: wait, try again, give up.
EXPECTED = (Permanent, Transient, Snooze, SlowDown, httpx.TransportError)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_answer_ends_in_time_with_a_reason(what: str, client: Callable[[int], Awaitable[object]]) -> None:
    """Never as a success, and a wait that is asked for is between a second and an hour."""

    async def run() -> None:
        async with serving(HOSTILE[what]) as port, asyncio.timeout(20):
            with pytest.raises(EXPECTED) as caught:
                await client(port)
        if isinstance(caught.value, Snooze | SlowDown):
            assert 1 <= caught.value.seconds <= 3600

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS[1:], ids=lambda client: client.__name__)
@pytest.mark.parametrize("what", JSON)
def test_json_of_another_shape_is_no_answer(what: str, client: Callable[[int], Awaitable[object]]) -> None:
    """Whatever stands where a list, a text or an address belongs."""

    async def run() -> None:
        async with serving(full(JSON[what])) as port:
            with pytest.raises(EXPECTED):
                await client(port)

    asyncio.run(run())


def test_what_is_no_encoding_is_ignored() -> None:
    """Some servers name the charset there; browsers show the page."""

    async def run() -> object:
        async with serving(full(PAGE, b"Content-Encoding: utf-8\r\n")) as port:
            return await website(port)

    assert getattr(asyncio.run(run()), "headings", None)
