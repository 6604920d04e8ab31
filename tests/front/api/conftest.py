"""A real server in a thread, on a free port, over the test's own database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
import uvicorn
from pydantic import SecretStr

from pipeline import settings
from pipeline.front.api.serve import server
from tests.place import Place

VIEWER = "v" * 24
OPERATOR = "o" * 24
TOKENS = f"viewer:{VIEWER},operator:{OPERATOR}"
Serve = Callable[..., str]


@pytest.fixture
def serve(place: Place) -> Iterator[Serve]:
    """Starts a server with the settings given and returns its address."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(**extra: object) -> str:
        config = settings.load(**extra)
        one = server(config, "127.0.0.1", 0)
        thread = threading.Thread(target=one.run, daemon=True)
        thread.start()
        running.append((one, thread))
        deadline = time.monotonic() + 10
        while not one.started:
            assert thread.is_alive() and time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        port = one.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    yield start
    for one, thread in running:
        one.should_exit = True
        thread.join(10)
        assert not thread.is_alive(), "the server did not stop"


@pytest.fixture
def api(serve: Serve) -> Iterator[httpx.Client]:
    """A client of a server without tokens."""
    with httpx.Client(base_url=serve(), timeout=20) as client:
        yield client


@pytest.fixture
def guarded(serve: Serve) -> Iterator[httpx.Client]:
    """A client without credentials, of a server with tokens."""
    with httpx.Client(base_url=serve(api_tokens=SecretStr(TOKENS)), timeout=20) as client:
        yield client


@pytest.fixture
def bearer() -> dict[str, dict[str, str]]:
    """The header that proves a role."""
    return {role: {"Authorization": f"Bearer {token}"} for role, token in (("viewer", VIEWER), ("operator", OPERATOR))}
