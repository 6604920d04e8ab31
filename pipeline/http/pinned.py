"""An httpx transport that looks a name up once, judges the answer, and connects to exactly that answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

from pipeline.declare.errors import Transient
from pipeline.http.addresses import AddressPolicy, vet_ip

Resolver = Callable[[str, int], list[str]]

# A read timeout alone lets a server drip one byte at a time for ever; the deadline covers the whole exchange.
_deadline: ContextVar[float | None] = ContextVar("fetch_deadline", default=None)


def system_resolver(host: str, port: int) -> list[str]:
    """Every address the operating system knows for ``host``, in its order of preference."""
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise Transient(f"host {host} was not found in DNS ({error})") from None
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Every read, write and connect of this thread inside the block ends within ``seconds``."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def time_left(timeout: float | None) -> float | None:
    """``timeout`` shortened to what the deadline leaves; raises ReadTimeout once nothing is left."""
    until = _deadline.get()
    if until is None:
        return timeout
    left = until - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the whole exchange took longer than allowed")
    return left if timeout is None else min(timeout, left)


class VettedBackend(httpcore.NetworkBackend):
    """Connects to vetted addresses only. One refused answer refuses the name: mixed answers are a trick."""

    def __init__(self, policy: AddressPolicy, resolve: Resolver = system_resolver) -> None:
        self._policy = policy
        self._resolve = resolve
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Try the vetted addresses in order and return the first that answers."""
        failure: Exception | None = None
        for address in self._vetted(host, port):
            try:
                stream = self._sockets.connect_tcp(address, port, time_left(timeout), local_address, socket_options)
                return _DeadlineStream(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"host {host} has no address")

    def _vetted(self, host: str, port: int) -> list[str]:
        addresses = self._resolve(host, port)
        if self._policy.vouches_for(host, port):
            return addresses
        return [vet_ip(address, self._policy) for address in addresses]


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, time_left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, time_left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, time_left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class PinnedTransport(httpx.BaseTransport):
    """Keeps Host and SNI as written while the connection goes to the address that was judged."""

    def __init__(
        self, policy: AddressPolicy, resolve: Resolver = system_resolver, *, max_connections: int = 100
    ) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            max_connections=max_connections,
            max_keepalive_connections=20,
            keepalive_expiry=3.0,
            network_backend=VettedBackend(policy, resolve),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; never follows a redirect by itself."""
        with _as_httpx_errors():
            answer = self._pool.handle_request(_core_request(request))
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions)

    def close(self) -> None:
        """Close every pooled connection."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx_errors():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


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
