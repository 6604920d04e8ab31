"""What a chat endpoint sends back: the answer wherever it stands, whether it is whole, and the tokens it took."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from actors.website.messages import Message
from actors.website.storable import one_line
from actors.website.tokens import estimate_tokens
from pipeline import Permanent, Transient

MILLION = Decimal(1_000_000)
# The limit of tokens was met: under its OpenAI name, and as gateways pass on those of others.
CUT = frozenset({"length", "max_tokens", "max_output_tokens"})


class Prices(Protocol):
    """What a million tokens cost, in USD; None if that is not known."""

    @property
    def price_in(self) -> Decimal | None: ...

    @property
    def price_out(self) -> Decimal | None: ...


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

    def cost(self, prices: Prices) -> Decimal | None:
        """USD, or None if the prices are not set."""
        if prices.price_in is None or prices.price_out is None:
            return None
        return (self.tokens_in * prices.price_in + self.tokens_out * prices.price_out) / MILLION


@dataclass(frozen=True)
class Reply:
    """One answer of the model. ``cut``: the limit of tokens was met before its end."""

    text: str
    model: str
    usage: Usage
    cut: bool = False


def read_completion(name: str, messages: Sequence[Message], body: bytes) -> Reply:
    """The answer in the body of a chat completion; raises if there is none."""
    try:
        found = json.loads(body)
        choice = found["choices"][0]
        message, reason = choice["message"], choice.get("finish_reason")
        text, refused = _text(message), _flat(message.get("refusal"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Transient(f"model {name} sent something else than a chat completion") from None
    if reason == "content_filter":
        raise Permanent(f"model {name} refused to describe this page (content filter)")
    cut = isinstance(reason, str) and reason.lower() in CUT
    if not text.strip():
        raise _no_answer(name, refused, cut)
    model = one_line(str(found.get("model") or name), 200)
    return Reply(text, model, _usage(found.get("usage"), messages, text), cut)


def _text(message: dict[str, Any]) -> str:
    """The content, whole or in parts; else what a function was to be called with."""
    text = _flat(message.get("content"))
    if text.strip():
        return text
    calls = message.get("tool_calls")
    called = calls[0].get("function") if isinstance(calls, list) and calls else message.get("function_call")
    return _flat(called.get("arguments")) if isinstance(called, dict) else ""


def _flat(content: object) -> str:
    """A text, or the texts of a list of parts; thinking is a part of its own, and no answer."""
    if isinstance(content, list):
        parts = (
            part.get("text") for part in content if isinstance(part, dict) and "think" not in str(part.get("type"))
        )
        return "".join(text for text in parts if isinstance(text, str))
    if isinstance(content, dict):
        return json.dumps(content)
    return content if isinstance(content, str) else ""


def _no_answer(name: str, refused: str, cut: bool) -> Permanent | Transient:
    if refused:
        return Permanent(f"model {name} refused to describe this page: {one_line(refused, 200)}")
    if cut:
        return Transient(f"model {name} used up its tokens before it answered: raise MODEL_MAX_TOKENS")
    return Transient(f"model {name} sent an empty answer")


def _usage(said: object, messages: Sequence[Message], text: str) -> Usage:
    match said:
        case {"prompt_tokens": int(spent_in), "completion_tokens": int(spent_out)}:
            # more than this is no count, and would not fit its column
            if min(spent_in, spent_out) >= 0 and max(spent_in, spent_out) < 2**31:
                return Usage(spent_in, spent_out)
    return Usage(sum(estimate_tokens(m.content) for m in messages), estimate_tokens(text), estimated=True)
