"""Phase 3 against the sandbox's chat endpoint: answers, repairs, refusals, costs and secrets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from actors.website.analysis import SITE_TYPES, Analysis, Unusable, read_analysis
from actors.website.chat import ModelEndpoint
from actors.website.completions import Usage
from actors.website.config import WebsiteSettings
from actors.website.messages import form_prompts
from actors.website.model import analyse
from actors.website.page import Page
from pipeline.declare.errors import GiveUp, Permanent, Retry, SnoozeFor, Transient, classify
from sandbox import Sandbox
from sandbox.chat import WRAPPINGS

PAGE = Page(url="https://example.com/", title="Tea", language="en", text="We sell tea. Order today. It is fresh.")
MESSAGES = form_prompts(PAGE, 3000).messages
WHOLE = {
    "summary": "Tea.",
    "site_type": "shop",
    "language": "en",
    "audience": "all",
    "topics": ["tea"],
    "confidence": 0.9,
    "key_points": ["fresh"],
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def endpoint(settings: WebsiteSettings) -> ModelEndpoint:
    return settings.model


def test_an_answer_is_validated_and_its_tokens_counted(endpoint: ModelEndpoint) -> None:
    """The plain case."""
    found = asyncio.run(analyse(endpoint, MESSAGES))
    assert (found.analysis.site_type, found.analysis.language, found.repaired) == ("shop", "en", False)
    assert found.analysis.summary.startswith("We sell tea.")
    assert found.usage.tokens_in > found.usage.tokens_out > 0


def test_one_bad_answer_is_repaired_and_both_are_paid_for(endpoint: ModelEndpoint, sandbox: Sandbox) -> None:
    """The second round carries the problems; usage is the sum."""
    found = asyncio.run(analyse(replace(endpoint, name="sandbox-bad-json-first"), MESSAGES))
    assert found.repaired
    assert found.usage.tokens_in > 2 * asyncio.run(analyse(endpoint, MESSAGES)).usage.tokens_in
    assert sandbox.stats()["paths"]["/v1/chat/completions"] == 3


def test_a_model_that_stays_wrong_is_asked_twice_only(endpoint: ModelEndpoint, sandbox: Sandbox) -> None:
    """After one repair round the attempt is over."""
    with pytest.raises(Transient, match="nor its correction"):
        asyncio.run(analyse(replace(endpoint, name="sandbox-bad-json"), MESSAGES))
    assert sandbox.stats()["requests"] == 2


def test_a_fence_around_the_json_is_fine(endpoint: ModelEndpoint) -> None:
    """Many models cannot help it."""
    for name in WRAPPINGS:
        assert not asyncio.run(analyse(replace(endpoint, name=name), MESSAGES)).repaired, name


@pytest.mark.parametrize("name", ["sandbox-parts", "sandbox-tool"])
def test_an_answer_is_found_where_endpoints_put_it(endpoint: ModelEndpoint, name: str) -> None:
    """In parts beside the thinking, or as what a function is to be called with."""
    found = asyncio.run(analyse(replace(endpoint, name=name), MESSAGES))
    assert (found.analysis.site_type, found.repaired) == ("shop", False)


def test_an_answer_that_met_its_limit_is_not_completed(endpoint: ModelEndpoint, sandbox: Sandbox) -> None:
    """A forgotten bracket is added; a bracket that no token was left for shows that more is missing."""
    assert read_analysis(json.dumps(WHOLE)[:-1]).topics == ["tea"]
    with pytest.raises(Unusable, match="cut off"):
        read_analysis(json.dumps(WHOLE)[:-1], cut=True)
    assert read_analysis(json.dumps(WHOLE), cut=True).topics == ["tea"]
    with pytest.raises(Transient, match=r"cut off.* \(\d+ and \d+ tokens were spent\)"):
        asyncio.run(analyse(replace(endpoint, name="sandbox-cut"), MESSAGES))
    assert sandbox.stats()["requests"] == 2


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [("sandbox-silent", Transient, "raise MODEL_MAX_TOKENS"), ("sandbox-refuses", Permanent, "I cannot help")],
)
def test_no_answer_says_why(endpoint: ModelEndpoint, name: str, error: type[Exception], words: str) -> None:
    """Thinking took all tokens, or the model does not want to."""
    with pytest.raises(error, match=words):
        asyncio.run(analyse(replace(endpoint, name=name), MESSAGES))


def test_a_model_is_asked_without_what_it_refuses_by_name(endpoint: ModelEndpoint, sandbox: Sandbox) -> None:
    """The limit has another name there, and nothing chooses the temperature; the second question knows."""
    new = replace(endpoint, name="sandbox-new")
    assert not asyncio.run(analyse(new, MESSAGES)).repaired
    assert sandbox.stats()["requests"] == 3
    asyncio.run(analyse(new, MESSAGES))
    assert sandbox.stats()["requests"] == 4


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        ({"status": 429, "retry_after": "12"}, SnoozeFor(12.0, "retry_after")),
        ({"status": 503}, Retry()),
        ({"status": 400}, GiveUp()),
        ({"cut": True}, Retry()),
        ({"garbage": True}, Retry()),
    ],
)
def test_refusals_reach_the_engine(
    endpoint: ModelEndpoint, sandbox: Sandbox, fault: dict[str, object], verdict: object
) -> None:
    """Each with its meaning: wait, try again, give up."""
    sandbox.add_fault(match="/v1/chat", **fault)
    with pytest.raises(Exception) as caught:  # which one is the subject of the test
        asyncio.run(analyse(endpoint, MESSAGES))
    assert classify(caught.value, NOW) == verdict


def test_a_slow_model_times_out(endpoint: ModelEndpoint, sandbox: Sandbox) -> None:
    """Within the model's own time."""
    sandbox.add_fault(match="/v1/chat", delay=3)
    with pytest.raises(httpx.ReadTimeout):
        asyncio.run(analyse(replace(endpoint, seconds=0.3), MESSAGES))


def test_the_key_shows_nowhere(endpoint: ModelEndpoint) -> None:
    """Not in the repr, not in the error of a refusal."""
    secret = replace(endpoint, api_key=SecretStr("wrong"))
    assert "wrong" not in repr(secret)
    with pytest.raises(Permanent, match="401") as refused:
        asyncio.run(analyse(secret, MESSAGES))
    assert "wrong" not in str(refused.value) + repr(refused.value.__dict__)


def test_an_echoed_key_is_blotted_out(endpoint: ModelEndpoint) -> None:
    """Some endpoints repeat the key they refuse."""
    talkative = replace(endpoint, url=endpoint.url.replace("/v1", "/status/404"), api_key=SecretStr("Not Found"))
    with pytest.raises(Permanent) as refused:
        asyncio.run(analyse(talkative, MESSAGES))
    assert str(refused.value).endswith(": ***")


def test_cost_is_tokens_times_price() -> None:
    """In USD for a million tokens; unknown without prices."""
    priced = ModelEndpoint("http://x", "m", price_in=Decimal("0.15"), price_out=Decimal("0.60"))
    assert Usage(1000, 500).cost(priced) == Decimal("0.00045")
    assert Usage(1000, 500).cost(ModelEndpoint("http://x", "m")) is None


def test_what_is_not_in_the_schema_is_named() -> None:
    """In words that a model can act on."""
    with pytest.raises(Unusable, match='"site_type"') as unusable:
        read_analysis('{"summary": "x", "site_type": "castle", "confidence": 2}')
    assert '"confidence"' in str(unusable.value)


def test_the_words_and_the_schema_agree() -> None:
    """Every field is explained to the model, every site type is accepted."""
    from actors.website.analysis import SCHEMA_IN_WORDS

    assert all(f'"{name}"' in SCHEMA_IN_WORDS for name in Analysis.model_fields)
    base = {"summary": "s", "language": "en", "audience": "a", "topics": [], "key_points": [], "confidence": 1}
    assert {Analysis.model_validate(base | {"site_type": kind}).site_type for kind in SITE_TYPES} == set(SITE_TYPES)


@given(st.text(max_size=200) | st.recursive(st.integers() | st.text(), st.lists).map(str))
def test_any_answer_is_read_or_refused(answer: str) -> None:
    """No answer makes the reader fail in another way."""
    with contextlib.suppress(Unusable):
        read_analysis(answer)


def test_a_filtered_answer_fails_for_good(endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking again would not help."""
    from actors.website import chat
    from pipeline.http.client import Fetched

    body = b'{"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]}'

    async def posted(*_: object, **__: object) -> Fetched:
        return Fetched("u", "http://u", 200, httpx.Headers(), body, 0)

    monkeypatch.setattr(chat, "post", posted)
    with pytest.raises(Permanent, match="content filter"):
        asyncio.run(analyse(endpoint, MESSAGES))
