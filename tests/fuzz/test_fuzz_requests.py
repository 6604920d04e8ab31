"""No request, whatever is in it, gets a 5xx or stops the server, and no job it leaves behind is stuck."""

from __future__ import annotations

import random
import re
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import orjson
import pytest
from pydantic import SecretStr

from pipeline import submit_many
from pipeline.front.api.http import guessing
from tests.front.api.conftest import OPERATOR, TOKENS, VIEWER, Serve
from tests.front.api.test_http_schema import ENDLESS, examine
from tests.fuzz.scale import FULL, dice, tell, times
from tests.fuzz.spoil import NASTY, spoil, spoil_bytes, value
from tests.place import Place

HEADERS = [
    "Idempotency-Key",
    "traceparent",
    "Content-Type",
    "Authorization",
    "X-Pipeline",
    "Cookie",
    "Origin",
    "Range",
    "If-Match",
    "Accept",
    "Content-Encoding",
    "Last-Event-ID",
    "Sec-Fetch-Site",
    "Host",
]
GOOD: dict[str, Any] = {
    "workflow": "plain",
    "body": {"n": 1},
    "priority": 0,
    "name": "a project",
    "entries": [{"name": "Ada"}],
    "reason": "because",
    "ids": [],
    "token": "x" * 24,
    "limit": 10,
    "due": "2099-01-01T00:00:00+00:00",
}
EXAMPLES = 25
Operation = tuple[str, str, list[str], list[str]]


class Requests:
    """Endless requests to the operations of the API's own description: half of them nearly right."""

    def __init__(self, description: dict[str, Any], known: list[str], chance: random.Random) -> None:
        self._chance = chance
        self._known = known
        self._operations: list[Operation] = [
            (
                method.upper(),
                path,
                [p["name"] for p in what.get("parameters", []) if p["in"] == "query"],
                _members(description, what),
            )
            for path, methods in description["paths"].items()
            if path != ENDLESS
            for method, what in methods.items()
        ]

    def __iter__(self) -> Iterator[httpx.Request]:
        while True:
            try:
                yield self._one()
            except (httpx.InvalidURL, ValueError, TypeError):
                continue  # nobody could send this over HTTP

    def _one(self) -> httpx.Request:
        chance = self._chance
        method, path, names, members = chance.choice(self._operations)
        if chance.random() < 0.03:
            method, path = (
                chance.choice(["PUT", "PATCH", "HEAD", "TRACE", "BREW"]),
                chance.choice([path, "/", "//", "/static/../x"]),
            )
        target = re.sub(r"\{\w+\}", lambda _: self._segment(), path)
        query = {name: str(self._value()) for name in names if chance.random() < 0.4}
        if chance.random() < 0.1:
            query[str(self._value())[:30]] = str(self._value())
        content, kind = (
            self._body(members) if method in ("POST", "PUT", "PATCH", "DELETE") else (b"", "application/json")
        )
        return httpx.Request(method, f"http://fuzz{target}", params=query, content=content, headers=self._headers(kind))

    def _segment(self) -> str:
        return quote(str(self._value())[:300], safe="" if self._chance.random() < 0.9 else "/%") or "x"

    def _value(self) -> Any:
        return self._chance.choice(self._known) if self._chance.random() < 0.4 else value(self._chance)

    def _body(self, members: list[str]) -> tuple[bytes, str]:
        chance = self._chance
        chosen = {key: GOOD.get(key, "x") for key in members if chance.random() < 0.8} or {"x": 1}
        match chance.randrange(8):
            case 0:
                return orjson.dumps(chosen), "application/json"
            case 1:
                return chance.randbytes(chance.randrange(100)), "application/json"
            case 2:
                return spoil_bytes(orjson.dumps(chosen), chance), "application/json"
            case 3:
                return spoil_bytes(b"name,born\nAda,1815\n" * 3, chance), "text/csv"
            case 4 if chance.random() < 0.05:
                return b"[" * 70_000, "application/json"
            case _:
                return orjson.dumps(spoil(chosen, chance), option=orjson.OPT_NON_STR_KEYS), "application/json"

    def _headers(self, kind: str) -> dict[str, str]:
        headers = {
            "Content-Type": kind,
            "X-Pipeline": "1",
            "Authorization": f"Bearer {self._chance.choice([OPERATOR] * 4 + [VIEWER, 'x'])}",
        }
        if self._chance.random() < 0.2:
            name, said = self._chance.choice(HEADERS), self._chance.choice([n for n in NASTY if isinstance(n, str)])
            headers[name] = said.encode("ascii", "replace").decode()[:2000]
        return headers


def _members(description: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    """The names that the operation's body may have."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return list(description["components"]["schemas"].get(name, {}).get("properties", {}))


def test_no_request_gets_a_5xx(place: Place, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly right, wrong and senseless ones; and whatever jobs they left are done afterwards."""
    # Otherwise a hundred wrong tokens would have most of the requests refused unread.
    monkeypatch.setattr(guessing, "SECONDS", 0.0)
    known = [str(job) for job in submit_many(None, "plain", [{} for _ in range(5)])] + [
        "plain",
        "alpha",
        "1",
        "2",
        "pending",
    ]
    address, counts, wrong = serve(api_tokens=SecretStr(TOKENS)), Counter[str](), Counter[str]()
    with httpx.Client(timeout=30) as client:
        requests = iter(Requests(client.get(f"{address}/v1/openapi.json").json(), known, dice("requests")))
        for _ in range(times(300, 21_000)):
            request = next(requests)
            request.url = request.url.copy_with(host="127.0.0.1", port=urlsplit(address).port)
            try:
                answer = client.send(request)
            except (httpx.LocalProtocolError, UnicodeEncodeError):
                continue  # the client itself refuses to send this
            counts[f"{answer.status_code}"] += 1
            if answer.status_code >= 500:
                wrong[f"{request.method} {request.url.path[:80]} {answer.status_code}: {answer.text[:300]}"] += 1
        assert client.get(f"{address}/healthz").status_code == 200
    tell("requests to a real server (by the status of the answer)", counts)
    assert not counts["429"]
    assert not wrong, "\n".join(f"{n} × {what}" for what, n in wrong.most_common(20))
    _nothing_is_stuck(place)


def _nothing_is_stuck(place: Place) -> None:
    """The jobs that were let in and are due come to their end."""
    place.worker(threads=8, queues=("plain.alpha", "plain.beta", "plain.gamma"))
    open_jobs = """SELECT count(*) FROM pipeline.jobs j LEFT JOIN pipeline.outbox o ON o.job_id = j.id
        WHERE j.workflow = 'plain' AND j.completed_at IS NULL AND o.due_at IS NULL"""
    place.until(lambda: place.count(open_jobs) == 0, times(30, 120), "the jobs that were let in")


@pytest.mark.skipif(not FULL, reason="tests/front/api/test_http_schema.py does the same in small numbers")
def test_generated_requests_are_answered_as_described(place: Place, serve: Serve) -> None:
    """Status, media type, headers and body, as right and wrong requests to every operation show."""
    submit_many(None, "plain", [{}])
    address, counts = serve(api_tokens=SecretStr(TOKENS)), Counter[str]()
    for role, token in (("operator", OPERATOR), ("viewer", VIEWER)):
        counts[f"as {role}"] = len(examine(address, token, EXAMPLES))
    tell(f"operations, each called {EXAMPLES} times rightly and {EXAMPLES} times wrongly", counts)


def test_bytes_that_are_no_http_leave_the_server_standing(serve: Serve) -> None:
    """Straight into the socket."""
    address, chance, counts = serve(), dice("sockets"), Counter[str]()
    place = urlsplit(address).hostname, urlsplit(address).port
    whole = (
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n"
        + b'{"workflow":"plain"}'
    )
    for _ in range(times(30, 1_000)):
        with socket.create_connection(place, timeout=5) as line:
            line.settimeout(0.2)
            try:
                line.sendall(spoil_bytes(whole, chance))
                line.shutdown(socket.SHUT_WR)
                counts[line.recv(12)[9:12].decode("ascii", "replace") or "closed"] += 1
            except OSError:
                counts["closed"] += 1
    assert httpx.get(f"{address}/healthz").status_code == 200
    tell("spoiled byte streams to its socket (by the status of the answer)", counts)
    assert not [status for status in counts if status.startswith("5")], counts
