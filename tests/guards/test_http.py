"""Every dimension of a fetch is bounded; shown against a real server."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from pipeline.declare.errors import Permanent
from pipeline.http import client
from pipeline.http.addresses import AddressPolicy
from pipeline.http.client import Fetched, Fetcher, Limits, TooLarge, shared_fetcher
from pipeline.http.pinned import VettedBackend
from sandbox import Sandbox

QUICK = Limits(connect=1, read=2, total=4, max_redirects=3, max_raw=300_000, max_body=300_000)


def fetch(url: str, **how: Any) -> Fetched:
    return asyncio.run(client.fetch(url, **how))


def test_a_page_comes_back_whole(sandbox: Sandbox, policy: AddressPolicy) -> None:
    """Status, headers, body and final address of a plain page."""
    answer = fetch(f"{sandbox.url}/sites/0/", policy=policy, limits=QUICK)
    assert (answer.status, answer.content_type, answer.history) == (200, "text/html", ())
    assert b"<title>" in answer.body


def test_redirects_are_followed_and_remembered(sandbox: Sandbox, policy: AddressPolicy) -> None:
    """Three hops within a limit of three."""
    answer = fetch(f"{sandbox.url}/redirect/3", policy=policy, limits=QUICK)
    assert answer.url_final == f"{sandbox.url}/sites/1/"
    assert [url.rpartition("/")[2] for url in answer.history] == ["3", "2", "1"]


@pytest.mark.parametrize(("path", "words"), [("/redirect/4", "more than 3 times"), ("/loop/a", "in a circle")])
def test_endless_redirects_end(sandbox: Sandbox, policy: AddressPolicy, path: str, words: str) -> None:
    """Too many hops and loops are refused for good."""
    with pytest.raises(Permanent, match=words):
        fetch(sandbox.url + path, policy=policy, limits=QUICK)


@pytest.mark.parametrize("path", ["/huge?mb=4", "/bomb/gzip", "/bomb/deflate", "/bomb/br"])
def test_an_answer_that_is_too_large_stops_early(sandbox: Sandbox, policy: AddressPolicy, path: str) -> None:
    """Bytes are counted as they come, before and after decompression."""
    with pytest.raises(TooLarge, match="larger than the allowed"):
        fetch(sandbox.url + path, policy=policy, limits=QUICK)


def test_an_oversize_answer_can_be_cut_instead(sandbox: Sandbox, policy: AddressPolicy) -> None:
    """For robots.txt the beginning counts."""
    limits = replace(QUICK, cut_oversize=True)
    assert len(fetch(f"{sandbox.url}/bomb/gzip", policy=policy, limits=limits).body) == QUICK.max_body


@pytest.mark.parametrize("path", ["/slow?seconds=3", "/drip?pause=0.05"])
def test_a_slow_answer_times_out_within_the_total(sandbox: Sandbox, policy: AddressPolicy, path: str) -> None:
    """Silence meets the read timeout; a drip, which never is silent, meets the total."""
    begun = time.monotonic()
    with pytest.raises(httpx.ReadTimeout):
        fetch(sandbox.url + path, policy=policy, limits=replace(QUICK, read=0.5, total=1))
    assert time.monotonic() - begun < 1.5


def test_a_cut_connection_is_a_transport_error(sandbox: Sandbox, policy: AddressPolicy) -> None:
    """The engine counts it as transient."""
    with pytest.raises(httpx.TransportError):
        fetch(f"{sandbox.url}/cut", policy=policy, limits=QUICK)


def test_nobody_listening_is_a_transport_error() -> None:
    """The same for a refused connection."""
    with pytest.raises(httpx.ConnectError):
        fetch("http://127.0.0.1:1/", policy=AddressPolicy(allowed_hosts=frozenset({"127.0.0.1:1"})), limits=QUICK)


def test_a_refusal_keeps_its_status_and_headers(sandbox: Sandbox, policy: AddressPolicy) -> None:
    """The engine reads the status and Retry-After from the error."""
    answer = fetch(f"{sandbox.url}/sites/1/?fault_status=429&fault_retry_after=7", policy=policy, limits=QUICK)
    with pytest.raises(httpx.HTTPStatusError, match="answered 429 Too Many Requests") as refused:
        answer.raise_for_status()
    assert refused.value.response.headers["retry-after"] == "7"


def test_cookies_do_not_travel_between_fetches(policy: AddressPolicy) -> None:
    """One site must not see what another set; the shared client has no memory."""
    cookies = asyncio.run(shared_fetcher(policy))._client.cookies
    request = httpx.Request("GET", "http://example.com/")
    cookies.extract_cookies(httpx.Response(200, headers={"Set-Cookie": "a=b"}, request=request))
    assert not list(cookies.jar)


def test_coroutines_share_one_client_and_policies_and_loops_do_not(policy: AddressPolicy) -> None:
    """A connection opened under a lax policy must never serve a strict one, nor one loop's another loop."""

    async def clients() -> set[Fetcher]:
        assert await shared_fetcher(AddressPolicy()) is not await shared_fetcher(policy)
        return set(await asyncio.gather(*(shared_fetcher(policy) for _ in range(50))))

    first, second = asyncio.run(clients()), asyncio.run(clients())
    assert len(first) == len(second) == 1 and first.isdisjoint(second)


def test_a_forked_child_makes_its_own_client(policy: AddressPolicy) -> None:
    """Two processes on one socket would read each other's answers."""
    parents = asyncio.run(shared_fetcher(policy))._client
    child = os.fork()
    if child == 0:
        os._exit(int(asyncio.run(shared_fetcher(policy))._client is parents))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Opened:
    """The connections that a client opens, by asking for its sockets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.streams: list[Any] = []
        connect = VettedBackend.connect_tcp

        async def noted(*args: Any, **rest: Any) -> Any:
            self.streams.append(await connect(*args, **rest))
            return self.streams[-1]

        monkeypatch.setattr("pipeline.http.pinned.VettedBackend.connect_tcp", noted)

    @property
    def open(self) -> int:
        sockets: Iterator[socket.socket] = (stream.get_extra_info("socket") for stream in self.streams)
        return sum(one.fileno() != -1 for one in sockets)


def test_an_idle_connection_is_used_again_and_closes_with_its_loop(
    sandbox: Sandbox, policy: AddressPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty at once and forty more: no more connections than at once."""
    opened = Opened(monkeypatch)

    async def twice() -> None:
        for _ in range(2):
            await asyncio.gather(
                *(client.fetch(f"{sandbox.url}/sites/1/", policy=policy, limits=QUICK) for _ in range(40))
            )
        assert opened.open == 40

    asyncio.run(twice())
    assert len(opened.streams) == 40 and opened.open == 0


def test_a_fetch_that_is_cancelled_leaves_no_connection(
    sandbox: Sandbox, policy: AddressPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is cancelled, or out of time, lets go of its socket at once."""
    opened = Opened(monkeypatch)

    async def cancelled() -> None:
        fetching = asyncio.create_task(client.fetch(f"{sandbox.url}/slow?seconds=3", policy=policy, limits=QUICK))
        while not opened.streams:
            await asyncio.sleep(0.01)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        assert opened.open == 0

    asyncio.run(cancelled())
