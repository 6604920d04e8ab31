"""The API's own description is walked: no operation forgets to ask who calls."""

from __future__ import annotations

import re

import httpx
from pydantic import SecretStr

from tests.front.api.conftest import TOKENS, VIEWER, Serve

# For everybody: whether the process lives and can work, the door itself, and links that are signed.
LINKS = {("get", "/v1/events/{token}"), ("post", "/v1/events/{token}")}
OPEN = {("get", "/healthz"), ("get", "/readyz"), ("post", "/v1/session"), ("delete", "/v1/session"), *LINKS}
ANY_ID = "019b0000-0000-7000-8000-000000000001"


def test_no_operation_answers_a_stranger_and_no_change_is_open_to_a_viewer(serve: Serve) -> None:
    """401 without a token, 403 for a viewer who would change something, whatever else is wrong with the request."""
    with httpx.Client(base_url=serve(api_tokens=SecretStr(TOKENS)), timeout=20) as client:
        paths = client.get("/v1/openapi.json").json()["paths"]
        operations = [(method, path) for path, methods in paths.items() for method in methods]
        assert len(operations) > 20 and set(operations) >= OPEN
        for method, path in sorted(set(operations) - OPEN):
            target = re.sub(r"\{\w+\}", ANY_ID, path)
            assert client.request(method, target).status_code == 401, f"{method} {path} answers a stranger"
            if method != "get":
                viewer = {"Authorization": f"Bearer {VIEWER}"}
                assert client.request(method, target, headers=viewer).status_code == 403, (
                    f"{method} {path} obeys a viewer"
                )
