"""An OpenAI-style chat endpoint. Its answer is read out of the prompt, so it is useful and repeatable.

Model names change its manners: ``sandbox-bad-json-first`` answers with broken JSON until it is told so,
``sandbox-bad-json`` always does; those of WRAPPINGS give right JSON as models wrap it, those of PLACES put it
elsewhere, stop too early, refuse, or refuse parts of the question.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

WRAPPINGS: dict[str, Callable[[str], str]] = {
    "sandbox-chatty": lambda json: f"```json\n{json}\n```",
    "sandbox-prose": lambda json: f"Certainly! Here is what I found:\n\n{json}\n\nLet me know if you need more.",
    "sandbox-thinking": lambda json: f'<think>The keys are {{"summary": …}}, so let me see.</think>\n{json}',
    "sandbox-draft": lambda json: f"Draft:\n```json\n{{}}\n```\nFinal answer:\n```json\n{json}\n```",
    "sandbox-trailing-comma": lambda json: f"{json.rstrip().removesuffix('}')},}}",
}
PLACES = ("sandbox-parts", "sandbox-tool", "sandbox-cut", "sandbox-silent", "sandbox-refuses", "sandbox-new")
MODELS = ("sandbox", "sandbox-bad-json-first", "sandbox-bad-json", *WRAPPINGS, *PLACES)
_UNSUPPORTED = {
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead.",
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
}
KINDS = {
    "shop": ("shop", "order", "cart", "bestell", "panier", "注文", "订单", "pedido"),
    "company": ("founded", "offer", "angebot", "proposons", "ofrecemos", "office", "店", "firma"),
    "news": ("newsletter", "breaking", "reporter"),
    "documentation": ("install", "reference", "documentation"),
}


def routes() -> list[BaseRoute]:
    """``/v1/chat/completions`` and ``/v1/models``."""
    return [
        Route("/v1/chat/completions", _complete, methods=["POST"]),
        Route("/v1/models", _models),
    ]


async def _models(_: Request) -> Response:
    return JSONResponse({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})


async def _complete(request: Request) -> Response:
    if request.headers.get("authorization", "") == "Bearer wrong":
        return _error(401, "invalid_api_key", "Incorrect API key provided.")
    try:
        asked = await request.json()
        messages = [{"role": str(m["role"]), "content": str(m["content"])} for m in asked["messages"]]
        model = str(asked["model"])
    except (ValueError, KeyError, TypeError):
        return _error(400, "invalid_request_error", "model and messages (role, content) are required")
    if not messages or asked.get("stream"):
        return _error(400, "invalid_request_error", "messages must not be empty; stream is not supported")
    if model == "sandbox-new" and (unknown := {"max_tokens", "temperature"} & asked.keys()):
        return _error(400, "unsupported_parameter", _UNSUPPORTED[max(unknown)])
    wants_json = (asked.get("response_format") or {}).get("type") in {"json_object", "json_schema"}
    return JSONResponse(completion(model, messages, wants_json=wants_json))


def completion(model: str, messages: list[dict[str, str]], *, wants_json: bool) -> dict[str, Any]:
    """The whole answer for ``messages``; the same question always gets the same answer."""
    prompt = next((m["content"] for m in messages if m["role"] == "user"), messages[0]["content"])
    content = _manners(model, messages, _content(prompt, wants_json))
    spent_in, spent_out = sum(_tokens(m["content"]) + 4 for m in messages), _tokens(content)
    digest = hashlib.sha256(json.dumps([model, messages]).encode()).hexdigest()
    return {
        "id": f"chatcmpl-{digest[:24]}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, **_choice(model, content)}],
        "usage": {
            "prompt_tokens": spent_in,
            "completion_tokens": spent_out,
            "total_tokens": spent_in + spent_out,
        },
    }


def _choice(model: str, content: str) -> dict[str, Any]:
    """Where endpoints put what a model said, and how they say why it ended."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    reason = "stop"
    match model:
        case "sandbox-cut":
            message["content"], reason = content.removesuffix("}"), "length"
        case "sandbox-parts":
            message["content"] = [{"type": "thinking", "text": "{}"}, {"type": "text", "text": content}]
        case "sandbox-tool":
            call = {"type": "function", "function": {"name": "answer", "arguments": content}}
            message, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        case "sandbox-refuses":
            message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
        case "sandbox-silent":
            message, reason = {"role": "assistant", "content": ""}, "length"
    return {"message": message, "finish_reason": reason}


def _content(prompt: str, wants_json: bool) -> str:
    analysis = analyse(prompt)
    return json.dumps(analysis, ensure_ascii=False) if wants_json else str(analysis["summary"])


def _manners(model: str, messages: list[dict[str, str]], content: str) -> str:
    first_round = all(m["role"] != "assistant" for m in messages)
    if model == "sandbox-bad-json" or (model == "sandbox-bad-json-first" and first_round):
        return "Sure! Here is the analysis: " + content[: len(content) // 2]
    return WRAPPINGS[model](content) if model in WRAPPINGS else content


def analyse(prompt: str) -> dict[str, Any]:
    """What a careful reader could tell from the labelled lines and the text of a prompt."""
    text = prompt.rpartition("Text:")[2].strip() or prompt
    sentences = [s.strip() for s in re.split(r"(?<=[.!?。！？])\s*|\n+", text) if len(s.strip()) > 8]
    prose = [s for s in sentences if not s.startswith("#")] or sentences or [_labelled(prompt, "Title")]
    headings = [s.lstrip("# ") for s in sentences if s.startswith("#")]
    return {
        "summary": " ".join(prose[:2])[:600] or "The page says nothing.",
        "site_type": _kind(text),
        "language": _labelled(prompt, "Language") or "und",
        "audience": "visitors of " + (_labelled(prompt, "Title") or "the site"),
        "topics": _topics(text),
        "key_points": (headings + prose)[:5],
        "confidence": 0.9 if len(prose) > 3 else 0.5,
    }


def _labelled(prompt: str, label: str) -> str:
    found = re.search(rf"^{label}: *(.+)$", prompt, re.MULTILINE)
    return found.group(1).strip()[:200] if found else ""


def _kind(text: str) -> str:
    lower = text.lower()
    scores = {kind: sum(lower.count(word) for word in words) for kind, words in KINDS.items()}
    best = max(scores, key=lambda kind: scores[kind])
    return best if scores[best] else "other"


def _topics(text: str) -> list[str]:
    words = Counter(re.findall(r"[^\W\d_]{5,}|[\u3040-\u30ff\u4e00-\u9fff]{2,4}", text.lower()))
    return [word for word, _ in sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))[:6]]


def _tokens(text: str) -> int:
    return len(re.findall(r"[a-zA-Z0-9]{1,4}|[^\sa-zA-Z0-9]", text))


def _error(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": code, "code": code}}, status_code=status)
