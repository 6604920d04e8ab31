"""Gemini and other models in place of the local engine and rules, over real HTTP to the sandbox."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from actors.document import boosters
from actors.document.boosters import choose_booster
from actors.document.config import DocumentSettings
from actors.document.engines import Recognised, choose_engine
from actors.document.gemini import GeminiEngine, generate
from actors.document.pdf import open_pdf
from pipeline.declare.errors import Permanent, Snooze, Transient
from sandbox import Sandbox
from sandbox.papers import PAPERS, pdf
from tests.actors.document.accuracy import accuracy

DEED = "RF-1937-0117"
PAGE = Recognised([["Le maire a salué l'équi-", "page."]])


@pytest.fixture
def gemini(settings: DocumentSettings, monkeypatch: pytest.MonkeyPatch) -> DocumentSettings:
    for name in ("OCR_ENGINE", "OCR_BOOST"):
        monkeypatch.setenv(name, "gemini")
    return DocumentSettings()


def test_gemini_reads_a_page_by_setting(gemini: DocumentSettings, tmp_path: Path) -> None:
    """The right page's text comes back from the picture alone."""
    path = tmp_path / "deed.pdf"
    path.write_bytes(pdf(DEED))
    engine = choose_engine(gemini)
    assert isinstance(engine, GeminiEngine) and engine.name == "gemini-2.5-flash"
    with open_pdf(path, gemini) as opened:
        for page in (2, 5):
            found = asyncio.run(engine.read(opened.page(page)[0], "key"))
            assert accuracy(PAPERS[DEED].pages[page - 1], found.text) == 1.0


def test_one_refusal_reaches_the_engine_with_its_retry_after(sandbox: Sandbox, gemini: DocumentSettings) -> None:
    """So that the phase waits as long as it was told to."""
    sandbox.add_fault(match="/gemini/", status=429, retry_after="7")
    with pytest.raises(Snooze) as refusal:
        asyncio.run(generate(gemini, [{"text": "x"}], "key"))
    assert (refusal.value.seconds, refusal.value.reason, refusal.value.asked) == (7.0, "retry_after", True)


def test_the_key_is_sent_and_never_shown(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the settings nor in an error."""
    monkeypatch.setenv("GEMINI_URL", f"{sandbox.url}/gemini/v1beta")
    monkeypatch.setenv("GEMINI_API_KEY", "wrong")
    settings = DocumentSettings()
    with pytest.raises(Permanent, match="answered 400") as refusal:
        asyncio.run(generate(settings, [{"text": "x"}], "key"))
    assert "wrong" not in f"{settings!r} {refusal.value!r}"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"garbage": True}, Transient),
        # An end of the stream or a reset, as the kernel has it: the engine retries both.
        ({"cut": True}, (httpx.RemoteProtocolError, httpx.ReadError)),
    ],
)
def test_an_answer_that_is_none_can_be_asked_for_again(
    sandbox: Sandbox, gemini: DocumentSettings, answer: dict[str, Any], error: Any
) -> None:
    """Noise and cut connections are transient."""
    sandbox.add_fault(match="/gemini/", **answer)
    with pytest.raises(error):
        asyncio.run(generate(gemini, [{"text": "x"}], "key"))


def test_a_boosted_page_is_the_models_if_it_is_still_the_same_text(
    gemini: DocumentSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that summarises, chats or answers the document's own questions is not believed."""
    boost = choose_booster(gemini)
    assert asyncio.run(boost(PAGE, "key")) == "Le maire a salué l'équipage."  # the sandbox gives the text back
    for answer, believed in (
        ("Le maire a salué  l'équipage !", "Le maire a salué l'équipage !"),
        ("A mayor greets a crew.", "Le maire a salué l'équipage."),
        ("", "Le maire a salué l'équipage."),
    ):
        monkeypatch.setattr(boosters, "generate", partial(_answered, answer))
        assert asyncio.run(choose_booster(gemini)(PAGE, "key")) == believed


def test_a_boosted_page_that_lost_a_line_is_not_believed(
    gemini: DocumentSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much of the page is still there."""
    lines = [f"Article {n} : le conseil vote le budget de la commune." for n in range(1, 13)]
    page = Recognised([lines])
    before = asyncio.run(choose_booster(DocumentSettings())(page, "key"))
    for answer, believed in ((before.replace("Article 7", "Art. 7"), True), (before.replace(lines[6], ""), False)):
        monkeypatch.setattr(boosters, "generate", partial(_answered, answer))
        assert (asyncio.run(choose_booster(gemini)(page, "key")) != before) is believed


async def _answered(answer: str, *_: object) -> str:
    return answer


def test_an_openai_compatible_model_can_boost_too(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked, with a key for the page; the sandbox's answer is prose of its own and not believed."""
    for name, value in (("OCR_BOOST", "model"), ("MODEL_URL", f"{sandbox.url}/v1"), ("MODEL_NAME", "sandbox")):
        monkeypatch.setenv(name, value)
    text = asyncio.run(choose_booster(DocumentSettings())(PAGE, "key"))
    assert accuracy("Le maire a salué l'équipage.", text) > 0.9
    assert sandbox.stats()["paths"]["/v1/chat/completions"] == 1


def test_a_page_that_gemini_will_not_read_fails_for_good() -> None:
    """A refusal is no empty page."""
    from actors.document.gemini import _text
    from pipeline.http.client import Fetched

    def fetched(body: bytes) -> Fetched:
        return Fetched("u", "u", 200, httpx.Headers(), body, len(body))

    for body in (b'{"promptFeedback": {"blockReason": "OTHER"}}', b'{"candidates": [{"finishReason": "MAX_TOKENS"}]}'):
        with pytest.raises(Permanent):
            _text("gemini", fetched(body))
    assert _text("gemini", fetched(b'{"candidates": [{"content": {}, "finishReason": "STOP"}]}')) == ""
