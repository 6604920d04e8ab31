"""Prompts keep to their budget, can be replaced, and never obey the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.website.messages import form_prompts
from actors.website.page import Heading, Page
from actors.website.templates import fill, load
from actors.website.tokens import estimate_tokens
from pipeline.declare.errors import Permanent

PAGE = Page(
    url="https://example.com/", title="Tea $text", headings=[Heading(level=1, text="Tea")], text="Tea is hot. " * 3000
)


def test_the_prompts_fit_their_budget() -> None:
    """Only the page's text is shortened."""
    prompts = form_prompts(PAGE, 2000)
    assert 1500 < prompts.estimated_tokens <= 2000
    assert prompts.estimated_tokens == sum(estimate_tokens(m.content) for m in prompts.messages)
    assert prompts.text_was_cut
    assert "Title: Tea $text" in prompts.messages[1].content


def test_a_short_page_is_not_cut() -> None:
    """And the same page gives the same prompts."""
    short = PAGE.model_copy(update={"text": "Tea."})
    assert not form_prompts(short, 6000).text_was_cut
    assert form_prompts(short, 6000) == form_prompts(short, 6000)


def test_a_budget_without_room_for_the_page_is_refused() -> None:
    """The message names the setting."""
    with pytest.raises(Permanent, match="PIPELINE_WEBSITE_TOKEN_BUDGET"):
        form_prompts(PAGE, 100)


def test_a_users_template_replaces_the_shipped_one(tmp_path: Path) -> None:
    """One by one: what the folder lacks comes from the project."""
    (tmp_path / "analysis.txt").write_text("Seite: $title kostet 5 $$\n$text")
    messages = form_prompts(PAGE, 2000, tmp_path).messages
    assert messages[1].content.startswith("Seite: Tea $text kostet 5 $")
    assert "JSON object" in messages[0].content


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"$titel", r"uses \$titel; known names are"), (b"costs 5 $", "lone"), (b"\xff\xfe", "cannot be read")],
)
def test_a_template_that_cannot_be_used_is_explained(tmp_path: Path, content: bytes, words: str) -> None:
    """Its author is told what to write instead."""
    (tmp_path / "analysis.txt").write_bytes(content)
    with pytest.raises(Permanent, match=words):
        load("analysis", tmp_path)


def test_values_are_filled_in_once() -> None:
    """A page cannot reach other values by naming them."""
    assert "$schema" in fill("repair", {"problems": "$schema", "schema": "S"})
