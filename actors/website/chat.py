"""One round with any OpenAI-compatible chat endpoint. The key never shows in a repr or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import httpx
from pydantic import SecretStr

from actors.website.messages import Message
from actors.website.storable import one_line
from actors.website.tokens import estimate_tokens
from pipeline import Permanent, Transient
from pipeline.http.addresses import AddressPolicy, authority
from pipeline.http.client import MEBIBYTE, Fetched, Limits, post
from pipeline.http.refusals import answered, refusal

MILLION = Decimal(1_000_000)


@dataclass(frozen=True)
class ModelEndpoint:
    """Where the model is and what it costs. ``url`` ends before ``/chat/completions``; prices are in USD."""

    url: str
    name: str
    api_key: SecretStr | None = None
    seconds: float = 90.0
    max_output_tokens: int = 1200
    json_mode: bool = True
    price_in: Decimal | None = None
    price_out: Decimal | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens spent. ``estimated`` if the endpoint did not say."""

    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.estimated or other.estimated,
        )

    def cost(self, endpoint: ModelEndpoint) -> Decimal | None:
        """USD, or None if the endpoint's prices are not set."""
        if endpoint.price_in is None or endpoint.price_out is None:
            return None
        return (self.tokens_in * endpoint.price_in + self.tokens_out * endpoint.price_out) / MILLION


@dataclass(frozen=True)
class Reply:
    """One answer of the model."""

    text: str
    model: str
    usage: Usage


async def ask(
    endpoint: ModelEndpoint,
    messages: Sequence[Message],
    headers: Mapping[str, str] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Reply:
    """One round. A refusal is raised as what it means for the job: Retry-After is waited for.

    Structured output is asked for where it exists: an endpoint that refuses the parameter by name is asked with less.
    """
    formats = answer_formats(endpoint.json_mode, schema)
    known = _formats.get((endpoint.url, endpoint.name), 0)
    for number in range(min(known, len(formats) - 1), len(formats)):
        answer = await _post(endpoint, messages, headers, formats[number])
        if answer.status != httpx.codes.OK and number + 1 < len(formats) and refuses_format(answer.status, answer.body):
            continue
        _formats[(endpoint.url, endpoint.name)] = number
        break
    if answer.status != httpx.codes.OK:
        raise _refusal(endpoint, answer)
    return _reply(endpoint, messages, answer)


# Which of the formats an endpoint took, so that only the first question of a process pays for finding out.
_formats: dict[tuple[str, str], int] = {}


def answer_formats(json_mode: bool, schema: Mapping[str, Any] | None) -> list[dict[str, Any] | None]:
    """Values of response_format from the strictest to none."""
    if not json_mode:
        return [None]
    plain: list[dict[str, Any] | None] = [{"type": "json_object"}, None]
    if schema is None:
        return plain
    named = {"name": "analysis", "schema": schema, "strict": False}
    return [{"type": "json_schema", "json_schema": named}, *plain]


def refuses_format(status: int, body: bytes) -> bool:
    """Whether an answer complains about response_format, and not about the question."""
    said = body[:4000].lower()
    return status in {400, 422} and any(word in said for word in (b"response_format", b"json_schema", b"json_object"))


async def _post(
    endpoint: ModelEndpoint,
    messages: Sequence[Message],
    headers: Mapping[str, str] | None,
    answer_format: dict[str, Any] | None,
) -> Fetched:
    return await post(
        f"{endpoint.url.rstrip('/')}/chat/completions",
        json.dumps(_question(endpoint, messages, answer_format)).encode(),
        policy=_policy(endpoint),
        limits=Limits(read=endpoint.seconds, total=endpoint.seconds, max_raw=MEBIBYTE, max_body=MEBIBYTE),
        headers=_headers(endpoint, headers or {}),
    )


def _question(
    endpoint: ModelEndpoint, messages: Sequence[Message], answer_format: dict[str, Any] | None
) -> dict[str, Any]:
    question: dict[str, Any] = {
        "model": endpoint.name,
        "messages": [message.model_dump() for message in messages],
        "max_tokens": endpoint.max_output_tokens,
        "temperature": 0,
    }
    if answer_format is not None:
        question["response_format"] = answer_format
    return question


def _headers(endpoint: ModelEndpoint, more: Mapping[str, str]) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", **more}
    if endpoint.api_key and endpoint.api_key.get_secret_value():
        headers["Authorization"] = f"Bearer {endpoint.api_key.get_secret_value()}"
    return headers


def _policy(endpoint: ModelEndpoint) -> AddressPolicy:
    """The operator chose this address, so it may be a private one; nothing else may be reached."""
    return AddressPolicy(allowed_hosts=frozenset({authority(endpoint.url)}))


def _refusal(endpoint: ModelEndpoint, answer: Fetched) -> Exception:
    words = _without_key(endpoint, one_line(answer.body[:2000].decode("utf-8", "replace"), 200))
    return refusal(f"{answered(f'model {endpoint.name}', answer.status)}: {words}", answer.status, answer.headers)


def _without_key(endpoint: ModelEndpoint, text: str) -> str:
    key = endpoint.api_key.get_secret_value() if endpoint.api_key else ""
    return text.replace(key, "***") if key else text


def _reply(endpoint: ModelEndpoint, messages: Sequence[Message], answer: Fetched) -> Reply:
    try:
        found = json.loads(answer.body)
        choice = found["choices"][0]
        text = choice["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise Transient(f"model {endpoint.name} sent something else than a chat completion") from None
    if choice.get("finish_reason") == "content_filter":
        raise Permanent(f"model {endpoint.name} refused to describe this page (content filter)")
    if not isinstance(text, str) or not text.strip():
        raise Transient(f"model {endpoint.name} sent an empty answer")
    model = one_line(str(found.get("model") or endpoint.name), 200)
    return Reply(text, model, _usage(found.get("usage"), messages, text))


def _usage(said: object, messages: Sequence[Message], text: str) -> Usage:
    match said:
        case {"prompt_tokens": int(spent_in), "completion_tokens": int(spent_out)}:
            # more than this is no count, and would not fit its column
            if min(spent_in, spent_out) >= 0 and max(spent_in, spent_out) < 2**31:
                return Usage(spent_in, spent_out)
    return Usage(sum(estimate_tokens(m.content) for m in messages), estimate_tokens(text), estimated=True)
