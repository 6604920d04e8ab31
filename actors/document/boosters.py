"""Boosting a page's text: by rules, or by a model whose answer counts only if it is still the same text."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from actors.document.boost import boost_page, tidy
from actors.document.config import DocumentSettings
from actors.document.engines import Recognised
from actors.document.gemini import generate
from actors.website.chat import ask
from actors.website.config import WebsiteSettings
from actors.website.messages import Message

Booster = Callable[[Recognised, str], Coroutine[Any, Any, str]]
# Below this share of common characters a model has rewritten the page, not cleaned it.
SAME_TEXT = 0.85
# A mistake of recognition is shorter: so many characters in a row are a line that was left out, or an invented one.
LONGEST_CHANGE = 40
CLEAN = (
    "Correct the recognition errors in this text of a scanned page: wrong letters, missing accents, words broken at "
    "line ends. Do not translate, shorten, explain or add anything. Answer with the corrected text alone.\n\n"
)


def choose_booster(settings: DocumentSettings) -> Booster:
    """What makes a page's text better; takes the page and a key that is the same for every attempt at it."""
    match settings.ocr_boost:
        case "gemini":
            return _checked(lambda text, key: generate(settings, [{"text": CLEAN + text}], key))
        case "model":
            return _checked(_ask_model)
        case _:
            return _by_rules


async def _by_rules(page: Recognised, key: str) -> str:  # noqa: ARG001  rules need none
    return boost_page(page.paragraphs)


def _checked(clean: Callable[[str, str], Coroutine[Any, Any, str]]) -> Booster:
    async def boost(page: Recognised, key: str) -> str:
        by_rules = boost_page(page.paragraphs)
        if not by_rules:
            return by_rules
        cleaned = await clean(by_rules, f"{key}:boost")
        parts = [tidy(part) for part in cleaned.split("\n\n")]
        answer = "\n\n".join(part for part in parts if part)
        return answer if _same_text(by_rules, answer) else by_rules

    return boost


def _same_text(before: str, after: str) -> bool:
    compared = SequenceMatcher(None, before, after, autojunk=False)
    changes = (abs((b - a) - (d - c)) for _, a, b, c, d in compared.get_opcodes())
    return compared.ratio() >= SAME_TEXT and max(changes, default=0) <= LONGEST_CHANGE


async def _ask_model(text: str, key: str) -> str:
    endpoint = replace(WebsiteSettings().model, json_mode=False, max_output_tokens=8000)
    reply = await ask(endpoint, [Message(role="user", content=CLEAN + text)], {"Idempotency-Key": key})
    return "" if reply.cut else reply.text
