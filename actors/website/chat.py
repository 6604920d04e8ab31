"""One round with any OpenAI-compatible chat endpoint. The key never shows in a repr or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import httpx
from pydantic import SecretStr

from actors.website.completions import Reply, read_completion
from actors.website.messages import Message
from actors.website.storable import one_line
from pipeline.http.addresses import AddressPolicy, authority
from pipeline.http.client import MEBIBYTE, Fetched, Limits, post
from pipeline.http.refusals import answered, refusal


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
class Dialect:
    """Which of the optional parts of a question an endpoint takes. ``format`` counts from the strictest."""

    format: int = 0
    limit: str = "max_tokens"
    temperature: bool = True

    def after(self, refusal: str, formats: int) -> Dialect | None:
        """Without the part that the endpoint has refused by its name; None if it complains about the question."""
        if self.format + 1 < formats and any(
            one in refusal for one in ("response_format", "json_schema", "json_object")
        ):
            return replace(self, format=self.format + 1)
        if self.limit == "max_tokens" and "max_completion_tokens" in refusal:
            return replace(self, limit="max_completion_tokens")
        if self.temperature and "temperature" in refusal:
            return replace(self, temperature=False)
        return None


# What each endpoint takes, so that only the first question of a process pays for finding out.
_dialects: dict[tuple[str, str], Dialect] = {}
# How an endpoint says that it does not know a part of the question.
REFUSES = frozenset({httpx.codes.BAD_REQUEST, httpx.codes.UNPROCESSABLE_ENTITY})


async def ask(
    endpoint: ModelEndpoint,
    messages: Sequence[Message],
    headers: Mapping[str, str] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Reply:
    """One round. A refusal is raised as what it means for the job: Retry-After is waited for.

    Structured output is asked for where it exists: an endpoint that refuses a part by name is asked without it.
    """
    formats = answer_formats(endpoint.json_mode, schema)
    known = _dialects.get((endpoint.url, endpoint.name), Dialect())
    dialect = replace(known, format=min(known.format, len(formats) - 1))
    answer = await _post(endpoint, messages, headers, formats[dialect.format], dialect)
    while answer.status in REFUSES:
        simpler = dialect.after(answer.body[:4000].lower().decode("utf-8", "replace"), len(formats))
        if simpler is None:
            break
        dialect = simpler
        answer = await _post(endpoint, messages, headers, formats[dialect.format], dialect)
    if answer.status != httpx.codes.OK:
        raise _refusal(endpoint, answer)
    _dialects[(endpoint.url, endpoint.name)] = dialect
    return read_completion(endpoint.name, messages, answer.body)


def answer_formats(json_mode: bool, schema: Mapping[str, Any] | None) -> list[dict[str, Any] | None]:
    """Values of response_format from the strictest to none."""
    if not json_mode:
        return [None]
    plain: list[dict[str, Any] | None] = [{"type": "json_object"}, None]
    if schema is None:
        return plain
    named = {"name": "analysis", "schema": schema, "strict": False}
    return [{"type": "json_schema", "json_schema": named}, *plain]


async def _post(
    endpoint: ModelEndpoint,
    messages: Sequence[Message],
    headers: Mapping[str, str] | None,
    answer_format: dict[str, Any] | None,
    dialect: Dialect,
) -> Fetched:
    return await post(
        f"{endpoint.url.rstrip('/')}/chat/completions",
        json.dumps(_question(endpoint, messages, answer_format, dialect)).encode(),
        policy=_policy(endpoint),
        limits=Limits(read=endpoint.seconds, total=endpoint.seconds, max_raw=MEBIBYTE, max_body=MEBIBYTE),
        headers=_headers(endpoint, headers or {}),
    )


def _question(
    endpoint: ModelEndpoint, messages: Sequence[Message], answer_format: dict[str, Any] | None, dialect: Dialect
) -> dict[str, Any]:
    question: dict[str, Any] = {
        "model": endpoint.name,
        "messages": [message.model_dump() for message in messages],
        dialect.limit: endpoint.max_output_tokens,
    }
    if dialect.temperature:
        question["temperature"] = 0
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
