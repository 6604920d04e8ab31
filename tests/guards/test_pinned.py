"""The connection goes to the address that was judged, whatever DNS says before or after."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import httpx
import pytest

from pipeline.declare.errors import Permanent, Transient
from pipeline.http.addresses import AddressPolicy
from pipeline.http.client import Fetched, Fetcher, Limits
from sandbox import Sandbox

QUICK = Limits(connect=1, read=2, total=3)


class Answers:
    """A name server under the attacker's control: each question gets the next answer."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.questions: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.questions.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def fetch(fetcher: Fetcher, url: str) -> Fetched:
    async def fetched() -> Fetched:
        try:
            return await fetcher.fetch(url, QUICK)
        finally:
            await fetcher.close()

    return asyncio.run(fetched())


def port_of(sandbox: Sandbox) -> int:
    return urlsplit(sandbox.url).port or 80


def open_port(sandbox: Sandbox) -> AddressPolicy:
    return AddressPolicy(ports=frozenset({port_of(sandbox)}))


@pytest.mark.parametrize(
    "answer", [["127.0.0.1"], ["10.0.0.7"], ["::1"], ["::ffff:127.0.0.1"], ["8.8.8.8", "192.168.0.1"], ["fe80::1%eth0"]]
)
def test_a_name_that_leads_to_a_private_address_is_refused(sandbox: Sandbox, answer: list[str]) -> None:
    """The name looks harmless, its address does not; one bad answer among good ones is enough."""
    before = sandbox.stats()["requests"]
    with pytest.raises(Permanent, match="not public"):
        fetch(Fetcher(open_port(sandbox), Answers(answer)), f"http://harmless.com:{port_of(sandbox)}/sites/1/")
    assert sandbox.stats()["requests"] == before


def test_a_name_is_looked_up_once_per_connection(sandbox: Sandbox) -> None:
    """Rebinding: the second answer, a private one, is never asked for, because the first is what is connected to."""
    policy = AddressPolicy(allow_private=True, ports=frozenset({port_of(sandbox)}))
    resolve = Answers(["127.0.0.1"], ["169.254.169.254"])
    answer = fetch(Fetcher(policy, resolve), f"http://rebinding.com:{port_of(sandbox)}/sites/1/")
    assert answer.status == 200
    assert resolve.questions == ["rebinding.com"]


def test_a_name_that_changes_its_mind_is_refused_at_the_next_connection(sandbox: Sandbox) -> None:
    """Rebinding over two requests: the new answer is judged like the first."""
    policy = AddressPolicy(allow_private=True, ports=frozenset({port_of(sandbox)}))
    fetcher = Fetcher(policy, Answers(["127.0.0.1"], ["169.254.169.254"]))
    url = f"http://rebinding.com:{port_of(sandbox)}/cut"

    async def twice() -> None:
        with pytest.raises(httpx.RemoteProtocolError):
            await fetcher.fetch(url, QUICK)
        await fetcher.fetch(url, QUICK)

    with pytest.raises(Permanent, match="link-local"):
        asyncio.run(twice())


def test_the_host_header_stays_as_written(sandbox: Sandbox) -> None:
    """Pinning changes where the connection goes, not what the server is asked for."""
    policy = AddressPolicy(allow_private=True, ports=frozenset({port_of(sandbox)}))
    answer = fetch(Fetcher(policy, Answers(["127.0.0.1"])), f"http://named.com:{port_of(sandbox)}/sites/1/")
    assert answer.url_final.startswith("http://named.com")


def test_the_next_address_is_tried_when_the_first_is_not_consuming(sandbox: Sandbox) -> None:
    """A host with two addresses is reached through the one that answers."""
    policy = AddressPolicy(allow_private=True, ports=frozenset({port_of(sandbox)}))
    resolve = Answers(["127.0.0.9", "127.0.0.1"])
    assert fetch(Fetcher(policy, resolve), f"http://two.com:{port_of(sandbox)}/sites/1/").status == 200


def test_an_unknown_name_may_be_known_later() -> None:
    """A name server can be down; the words say what was not found."""
    with pytest.raises(Transient, match=r"no-such-host\.com was not found"):
        fetch(Fetcher(AddressPolicy()), "http://no-such-host.com/")


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:1/",
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        "http://2130706433/",
        "//localhost/",
        "file:///etc/passwd",
        "http://user@example.com/",
        "http://example.com:22/",
        "gopher://x/",
        "http://[broken/",
    ],
)
def test_a_redirect_to_a_forbidden_address_is_refused(sandbox: Sandbox, policy: AddressPolicy, location: str) -> None:
    """Each hop is judged like the first address."""
    with pytest.raises(Permanent):
        fetch(Fetcher(policy), f"{sandbox.url}/redirect-to?url={location}")
