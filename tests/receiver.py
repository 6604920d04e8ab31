"""Somebody who receives webhooks, on loopback: keeps what came, and answers as it is told to."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pipeline.webhooks import Received, verify

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes or so"[:32]).decode()


@dataclass(frozen=True)
class Answer:
    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    after: float = 0.0


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: bytes

    def verified(self, secret: str = SECRET) -> Received:
        """As a receiver would; raises InvalidWebhook."""
        return verify(self.body, self.headers, secret)


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *args: Any) -> None:
        """A worker that was killed hangs up: nothing to tell of."""


class Receiver:
    """``answers`` are given one after the other; when there are no more, each request succeeds."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer] = []
        self.server = Quiet(("127.0.0.1", 0), self._handler())
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}/hooks"

    @property
    def settings(self) -> dict[str, str]:
        """Of workers that may reach it."""
        return {"PIPELINE_WEBHOOK_ALLOWED_HOSTS": self.host, "PIPELINE_WEBHOOK_SECRETS": SECRET}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.requests.append(Request(self.path, dict(self.headers.items()), body))
                answer = receiver.answers.pop(0) if receiver.answers else Answer()
                time.sleep(answer.after)
                self.send_response(answer.status)
                for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(answer.body)
                except OSError:
                    # It has heard enough.
                    pass

            def log_message(self, *args: Any) -> None:
                return

        return Handler


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()
