"""Boosting a page's text: by rules, or by a model whose answer counts only if it is still the same text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher

from actors.document.boost import boost_page, tidy
from actors.document.config import DocumentSettings
from actors.document.engines import Recognised
from actors.document.gemini import generate
from actors.website.chat import ask
from actors.website.config import WebsiteSettings
from actors.website.messages import Message

Booster = Callable[[Recognised, str], str]
# Below this share of common characters a model has rewritten the page, not cleaned it.
SAME_TEXT = 0.85
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
            return lambda page, key: boost_page(page.paragraphs)


def _checked(clean: Callable[[str, str], str]) -> Booster:
    def boost(page: Recognised, key: str) -> str:
        by_rules = boost_page(page.paragraphs)
        if not by_rules:
            return by_rules
        parts = [tidy(part) for part in clean(by_rules, f"{key}:boost").split("\n\n")]
        answer = "\n\n".join(part for part in parts if part)
        return answer if _same_text(by_rules, answer) else by_rules

    return boost


def _same_text(before: str, after: str) -> bool:
    return SequenceMatcher(None, before, after, autojunk=False).ratio() >= SAME_TEXT


def _ask_model(text: str, key: str) -> str:
    endpoint = replace(WebsiteSettings().model, json_mode=False, max_output_tokens=8000)
    return ask(endpoint, [Message(role="user", content=CLEAN + text)], {"Idempotency-Key": key}).text
