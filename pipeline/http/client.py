"""Fetch over HTTP with every dimension bounded: addresses, hops, seconds, and bytes on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urljoin

import httpx

from pipeline.declare.errors import Permanent
from pipeline.http.addresses import AddressPolicy, vet_url
from pipeline.http.cookies import Cookies
from pipeline.http.decoding import ACCEPTED, decoder_for
from pipeline.http.lenient import respelled
from pipeline.http.per_loop import PerLoop
from pipeline.http.pinned import PinnedTransport, Resolver, system_resolver

MEBIBYTE = 1024 * 1024
REDIRECTS = frozenset({301, 302, 303, 307, 308})
USER_AGENT = "durable-pipeline/1.0"


@dataclass(frozen=True)
class Limits:
    """Bounds of one fetch: seconds, hops, and bytes before (raw) and after (body) decompression."""

    connect: float = 5.0
    read: float = 10.0
    total: float = 30.0
    max_redirects: int = 5
    max_raw: int = 5 * MEBIBYTE
    max_body: int = 5 * MEBIBYTE
    # robots.txt counts up to its limit, a page beyond its limit is refused
    cut_oversize: bool = False


class TooLarge(Permanent):
    """The answer is larger than the limits allow; reading stopped there."""


@dataclass(frozen=True)
class Fetched:
    """One answer, complete and decompressed. ``history`` holds the addresses that redirected to it."""

    url: str
    url_final: str
    status: int
    headers: httpx.Headers
    body: bytes
    raw_bytes: int
    history: tuple[str, ...] = field(default=())

    @property
    def content_type(self) -> str:
        """The media type alone, in lower case; empty if the server named none."""
        return str(self.headers.get("content-type", "")).partition(";")[0].strip().lower()

    def raise_for_status(self) -> None:
        """Raise httpx.HTTPStatusError unless the answer is a success; the engine reads its status."""
        if 200 <= self.status < 300:
            return
        request = httpx.Request("GET", self.url_final)
        response = httpx.Response(self.status, headers=self.headers, request=request)
        words = f"{self.url_final} answered {self.status} {response.reason_phrase}".rstrip()
        raise httpx.HTTPStatusError(words, request=request, response=response)


@asynccontextmanager
async def deadline(seconds: float) -> AsyncIterator[None]:
    """The block ends within ``seconds``, or raises ReadTimeout.

    A read timeout alone lets a server drip one byte at a time for ever; this covers the whole exchange.
    """
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            yield
    except TimeoutError:
        if not timer.expired():
            raise
        raise httpx.ReadTimeout("the whole exchange took longer than allowed") from None


class Fetcher:
    """A connection pool under one policy, for coroutines of one event loop; keeps no cookies."""

    def __init__(self, policy: AddressPolicy, resolve: Resolver = system_resolver) -> None:
        self._policy = policy
        self._client = httpx.AsyncClient(
            transport=PinnedTransport(policy, resolve),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": ACCEPTED},
            follow_redirects=False,
            trust_env=False,
        )

    async def fetch(self, url: str, limits: Limits, headers: Mapping[str, str] | None = None) -> Fetched:
        """GET ``url`` through its redirects; every hop is judged like the first address."""
        history: list[str] = []
        cookies, states = Cookies(), set[tuple[str, str]]()
        async with deadline(limits.total):
            current = vet_url(url, self._policy).url
            while True:
                sent = cookies.header(current)
                states.add((current, sent))
                more = {**(headers or {}), **({"Cookie": sent} if sent else {})}
                request = self._request("GET", current, limits, more)
                answer = await self._send(request, url, limits, tuple(history))
                cookies.take(current, answer.headers.get_list("set-cookie"))
                location = _redirect(answer)
                if location is None:
                    return answer
                history.append(current)
                current = self._next(current, location, history, limits)
                if (current, cookies.header(current)) in states:
                    raise Permanent(f"{history[0]} redirects in a circle (back to {current})")

    async def post(self, url: str, content: bytes, limits: Limits, headers: Mapping[str, str]) -> Fetched:
        """POST once; a redirect is an answer like any other."""
        async with deadline(limits.total):
            current = vet_url(url, self._policy).url
            return await self._send(self._request("POST", current, limits, headers, content), url, limits, ())

    @asynccontextmanager
    async def stream(self, url: str, limits: Limits, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """GET once, and read the answer as it comes within the block; the caller counts its bytes."""
        async with deadline(limits.total):
            request = self._request("GET", vet_url(url, self._policy).url, limits, headers)
            response = await self._client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()

    async def close(self) -> None:
        """Close the pool's connections."""
        await self._client.aclose()

    def _next(self, current: str, location: str, history: list[str], limits: Limits) -> str:
        target = vet_url(_joined(current, location), self._policy).url
        if len(history) > limits.max_redirects:
            raise Permanent(f"{history[0]} redirects more than {limits.max_redirects} times")
        return target

    def _request(
        self, method: str, url: str, limits: Limits, headers: Mapping[str, str], content: bytes | None = None
    ) -> httpx.Request:
        timeout = _timeout(limits)
        return self._client.build_request(method, url, content=content, headers=dict(headers), timeout=timeout)

    async def _send(self, request: httpx.Request, url: str, limits: Limits, history: tuple[str, ...]) -> Fetched:
        response = await self._client.send(request, stream=True)
        try:
            # the body of a redirect is thrown away by everyone: do not pay for it
            skip = request.method == "GET" and response.status_code in REDIRECTS
            body, raw = (b"", 0) if skip else await _read(response, limits)
        finally:
            await response.aclose()
        return Fetched(url, str(request.url), response.status_code, response.headers, body, raw, history)


async def fetch(
    url: str,
    *,
    policy: AddressPolicy,
    limits: Limits | None = None,
    headers: Mapping[str, str] | None = None,
) -> Fetched:
    """GET ``url`` with this event loop's shared client for ``policy``."""
    return await (await shared_fetcher(policy)).fetch(url, limits or Limits(), headers)


async def post(
    url: str, content: bytes, *, policy: AddressPolicy, limits: Limits, headers: Mapping[str, str]
) -> Fetched:
    """POST ``content`` to ``url`` with this event loop's shared client for ``policy``."""
    return await (await shared_fetcher(policy)).post(url, content, limits, headers)


_shared: PerLoop[AddressPolicy, Fetcher] = PerLoop(Fetcher, Fetcher.close)


async def shared_fetcher(policy: AddressPolicy) -> Fetcher:
    """The one client of this event loop for ``policy``; connections are never shared between policies."""
    return await _shared.get(policy)


def _timeout(limits: Limits) -> httpx.Timeout:
    return httpx.Timeout(limits.read, connect=limits.connect, pool=limits.total)


def _redirect(answer: Fetched) -> str | None:
    return answer.headers.get("location") if answer.status in REDIRECTS else None


def _joined(current: str, location: str) -> str:
    try:
        return respelled(urljoin(current, respelled(location)))
    except ValueError:
        raise Permanent(f"{current} redirects to an address that cannot be read") from None


async def _read(response: httpx.Response, limits: Limits) -> tuple[bytes, int]:
    declared = response.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:18]) > limits.max_raw and not limits.cut_oversize:
        raise _too_large(response, limits.max_raw)
    decoder = decoder_for(response.headers.get("content-encoding", ""))
    body, raw = bytearray(), 0
    async for chunk in response.aiter_raw():
        raw += len(chunk)
        body += decoder.decode(chunk, limits.max_body + 1 - len(body))
        if raw > limits.max_raw or len(body) > limits.max_body:
            if limits.cut_oversize:
                return bytes(body[: limits.max_body]), raw
            raise _too_large(response, limits.max_raw if raw > limits.max_raw else limits.max_body)
    decoder.finish()
    return bytes(body), raw


def _too_large(response: httpx.Response, limit: int) -> TooLarge:
    return TooLarge(f"{response.request.url} is larger than the allowed {limit / MEBIBYTE:g} MiB")
