"""The API keeps its own description, whatever is sent: schemathesis over OpenAPI, once for each role."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import SecretStr
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pipeline.journey.submit import submit
from tests.front.api.conftest import OPERATOR, TOKENS, VIEWER, Serve
from tests.place import Place

ENDLESS = "/v1/events"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def examine(address: str, token: str, examples: int) -> dict[str, set[int]]:
    """Send valid and invalid requests to every operation; returns the answers' statuses by operation."""
    headers = {"Authorization": f"Bearer {token}", "X-Pipeline": "1"}
    schema = schemathesis.openapi.from_dict(httpx.get(f"{address}/v1/openapi.json").json()).exclude(path=ENDLESS)
    seen: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        statuses = seen.setdefault(f"{operation.method.upper()} {operation.path}", set())
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.POSITIVE or operation.body or list(operation.iter_parameters()):
                _send(operation.as_strategy(mode), address, headers, examples, statuses)
    return seen


def _send(strategy: Any, address: str, headers: dict[str, str], examples: int, statuses: set[int]) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def holds(case: schemathesis.Case[Any]) -> None:
        answer = case.call(base_url=address, headers=headers, timeout=60)
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    holds()


@pytest.mark.parametrize(
    ("token", "examples"),
    [
        pytest.param(OPERATOR, 3, id="operator"),
        pytest.param(VIEWER, 2, id="viewer"),
        pytest.param(OPERATOR, 50, id="operator-long", marks=pytest.mark.slow),
    ],
)
def test_no_answer_is_a_5xx_or_undocumented(
    place: Place, shop: ModuleType, serve: Serve, token: str, examples: int
) -> None:
    """Status, media type, headers and body of every answer are as described. One workflow has typed bodies."""
    submit(None, "single")
    seen = examine(serve(api_tokens=SecretStr(TOKENS)), token, examples)
    assert seen["GET /metrics"] == {200} and seen["GET /v1/jobs"] >= {200, 422}
    assert seen["GET /v1/workflows"] == {200}
    assert (403 in seen["POST /v1/dead/replay"]) is (token == VIEWER)
