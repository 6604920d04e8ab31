"""An httpx transport that looks a name up once, judges the answer, and connects to exactly that answer."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

from pipeline.declare.errors import Transient
from pipeline.http.addresses import AddressPolicy, vet_ip
from pipeline.http.connections import Connections

Resolver = Callable[[str, int], Awaitable[list[str]]]

# Of their own: while a name server is away, lookups must not take the threads in which phases ask PostgreSQL.
LOOKUP_THREADS = 32


async def system_resolver(host: str, port: int) -> list[str]:
    """Every address the operating system knows for ``host``, in its order of preference."""
    if _is_number(host):
        return [host]
    look = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        answers = await asyncio.get_running_loop().run_in_executor(_lookups(os.getpid()), look)
    except (socket.gaierror, UnicodeError) as error:
        raise Transient(f"host {host} was not found in DNS ({error})") from None
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1)
def _lookups(pid: int) -> ThreadPoolExecutor:  # noqa: ARG001  a forked child starts its own
    return ThreadPoolExecutor(LOOKUP_THREADS, "pipeline-dns")


class VettedBackend(httpcore.AsyncNetworkBackend):
    """Connects to vetted addresses only. One refused answer refuses the name: mixed answers are a trick."""

    def __init__(self, policy: AddressPolicy, resolve: Resolver = system_resolver) -> None:
        self._policy = policy
        self._resolve = resolve
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Try the vetted addresses in order and return the first that answers."""
        failure: Exception | None = None
        for address in await self._vetted(host, port):
            try:
                return await self._sockets.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"host {host} has no address")

    async def _vetted(self, host: str, port: int) -> list[str]:
        addresses = await self._resolve(host, port)
        if self._policy.vouches_for(host, port):
            return addresses
        return [vet_ip(address, self._policy) for address in addresses]


class PinnedTransport(httpx.AsyncBaseTransport):
    """Keeps Host and SNI as written while the connection goes to the address that was judged."""

    def __init__(self, policy: AddressPolicy, resolve: Resolver = system_resolver) -> None:
        self._connections = Connections(_tls(), VettedBackend(policy, resolve))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; never follows a redirect by itself."""
        asked = _core_request(request)
        with _as_httpx_errors():
            answer, connection = await self._connections.send(asked)
        body = _Body(answer, partial(self._connections.release, connection, asked))
        return httpx.Response(answer.status, headers=answer.headers, stream=body, extensions=answer.extensions)

    async def aclose(self) -> None:
        """Close every connection that is kept."""
        await self._connections.close()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response, release: Callable[[], Awaitable[None]]) -> None:
        self._answer = answer
        self._release = release

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx_errors():
            async for chunk in self._answer.aiter_stream():
                yield chunk

    async def aclose(self) -> None:
        try:
            await self._answer.aclose()
        finally:
            await self._release()


@lru_cache(maxsize=1)
def _tls() -> SSLContext:
    """One for all: reading the certificates takes longer than most fetches."""
    return httpx.create_ssl_context(trust_env=False)


def _core_request(request: httpx.Request) -> httpcore.Request:
    url = request.url
    return httpcore.Request(
        method=request.method,
        url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


@contextmanager
def _as_httpx_errors() -> Iterator[None]:
    try:
        yield
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        same_name = getattr(httpx, type(error).__name__, httpx.TransportError)
        raise same_name(str(error) or type(error).__name__) from error
