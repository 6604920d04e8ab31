"""Turn a page into the messages for the model, within a token budget."""

from __future__ import annotations

import json
from pathlib import Path

from actors.website.analysis import SCHEMA_IN_WORDS
from actors.website.page import Frozen, Page
from actors.website.templates import fill
from actors.website.tokens import cut_text, estimate_tokens
from pipeline import Permanent


class Message(Frozen):
    """One message of a chat."""

    role: str
    content: str


class Prompts(Frozen):
    """What the model will be asked, and how large that is by estimate."""

    messages: list[Message]
    estimated_tokens: int
    text_was_cut: bool


def form_prompts(page: Page, budget: int, folder: Path | None = None) -> Prompts:
    """The messages for ``page``; only the page's text is shortened, and only as far as needed."""
    system = fill("system", {"schema": SCHEMA_IN_WORDS}, folder)
    around = estimate_tokens(system) + estimate_tokens(_question(page, "", folder))
    if around >= budget:
        raise Permanent(
            f"the prompts need {around} tokens before any page text, the budget is {budget}; "
            "shorten the templates or raise PIPELINE_WEBSITE_TOKEN_BUDGET"
        )
    text = cut_text(page.text, budget - around)
    question = _question(page, text, folder)
    messages = [Message(role="system", content=system), Message(role="user", content=question)]
    return Prompts(
        messages=messages,
        estimated_tokens=sum(estimate_tokens(message.content) for message in messages),
        text_was_cut=text != page.text,
    )


def _question(page: Page, text: str, folder: Path | None) -> str:
    values = {
        "url": page.canonical or page.url,
        "title": page.title,
        "description": page.description,
        "language": page.language or "unknown",
        "headings": cut_text("\n".join(f"- {heading.text}" for heading in page.headings), 300),
        "links_in": str(len(page.links_in)),
        "links_out": str(len(page.links_out)),
        "structured_data": cut_text(json.dumps(page.structured_data, ensure_ascii=False), 300),
        "text": text,
    }
    return fill("analysis", values, folder)
