"""RabbitMQ's management API: one request, over a connection of its own. No redirect is followed, no proxy is asked."""

from __future__ import annotations

import json
from base64 import b64encode
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

PATIENCE = 10.0
# What a request raises while the server is away or something else listens there.
UNANSWERED = (OSError, HTTPException, ValueError)


class Login(NamedTuple):
    """A user of the broker."""

    name: str
    password: str


class Answer(NamedTuple):
    """``body`` is the JSON that came, or None if there was none."""

    status: int
    body: Any

    @property
    def well(self) -> bool:
        return 200 <= self.status < 300


def request(
    url: str, login: Login, path: str, method: str = "GET", body: object = None, *, seconds: float = PATIENCE
) -> Answer:
    """Ask the server at ``url`` for ``/api/<path>``; raises one of ``UNANSWERED`` if it does not answer in JSON."""
    address = urlsplit(url)
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=seconds)
    try:
        connection.request(method, f"/api/{path}", None if body is None else json.dumps(body), _headers(login))
        response = connection.getresponse()
        text = response.read()
        return Answer(response.status, json.loads(text) if text else None)
    finally:
        connection.close()


def _headers(login: Login) -> dict[str, str]:
    secret = b64encode(f"{login.name}:{login.password}".encode()).decode()
    return {"Authorization": f"Basic {secret}", "Content-Type": "application/json", "Connection": "close"}
