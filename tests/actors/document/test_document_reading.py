"""Which text of a page is kept, and when it is doubted. The engine and what reads single lines are stand-ins."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from actors.document import layout, reading
from actors.document.config import DocumentSettings
from actors.document.engines import Recognised
from actors.document.local_engine import filled
from actors.document.pdf import open_pdf
from actors.document.reading import Read, read_page
from sandbox.raw_pdf import Line, printed

WORDS = ["Le canal du moulin longe", "la prairie jusqu'au pont", "de pierre, puis la route"]
PAGE = printed([[Line(60, 700 - 20 * n, words) for n, words in enumerate(WORDS)]])


class Engine:
    """Reads what it is told to have read."""

    name = "stand-in"

    def __init__(self, found: Recognised) -> None:
        self.found, self.asked = found, 0

    async def read(self, page: object, key: str) -> Recognised:
        self.asked += 1
        return self.found


def first_page(content: bytes, folder: Path, engine: Engine) -> Read:
    path = folder / "page.pdf"
    path.write_bytes(content)
    with open_pdf(path, DocumentSettings(dpi=72)) as pdf:
        return asyncio.run(read_page(*pdf.page(1), engine, "key", 0.9))


def seen(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """What is read from the pieces of the picture, one after the other."""
    pieces = iter(lines)
    monkeypatch.setattr(reading, "read_line", lambda _: next(pieces))


def test_text_that_the_page_shows_is_kept_without_asking_the_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Small slips of the comparison do not matter."""
    seen(monkeypatch, "Le canal du moulin", "la prairie jusquau pont", "de pierre, puis la")
    engine = Engine(Recognised([]))
    found = first_page(PAGE, tmp_path, engine)
    assert (found.text.paragraphs, found.engine, found.doubt, engine.asked) == ([WORDS], "text layer", None, 0)


def test_text_that_the_page_does_not_show_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One piece that differs is enough."""
    seen(monkeypatch, "Le canal du moulin", "something else", "de pierre, puis la")
    found = first_page(PAGE, tmp_path, Engine(Recognised([["read"]], 0.99)))
    assert (found.text.paragraphs, found.engine, found.doubt) == ([["read"]], "stand-in", None)


def test_text_that_misses_a_part_of_the_page_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is drawn without text would be lost."""
    seen(monkeypatch, *(["Le canal du moulin"] * 9))
    drawn = b" ".join(b"%d %d 3 8 re f" % (60 + 8 * n, 300) for n in range(40))
    page = PAGE.replace(b"BT /F", drawn + b" BT /F")
    assert first_page(page, tmp_path, Engine(Recognised([["read"]], 0.99))).engine == "stand-in"


def read(page: Image.Image, found: Recognised) -> str | None:
    return asyncio.run(read_page(page, [], Engine(found), "key", 0.9)).doubt


def test_a_page_read_with_little_confidence_is_doubted() -> None:
    """The reason is kept with it."""
    page = Image.new("L", (200, 200), 255)
    assert read(page, Recognised([["a"]], 0.71)) == "read with a confidence of 0.71"
    assert read(page, Recognised([["a"]], 0.9)) is None
    assert read(page, Recognised([["a"]])) is None


def test_a_page_that_shows_something_but_gave_no_text_is_doubted() -> None:
    """An empty one is not."""
    page = Image.new("L", (400, 400), 230)
    assert read(page, Recognised([])) is None
    ImageDraw.Draw(page).text((50, 50), "not read", fill=40, font_size=30)
    assert read(page, Recognised([])) == "the page is not empty, but no text was found on it"


@pytest.mark.parametrize(
    ("text", "width", "share"),
    [
        ("The council met on Tuesday", 500, 1.0),
        ("I", 12, 1.0),
        ("A B C", 180, 1.0),
        ("東京の天気", 200, 1.0),
        (".", 700, 0.17),
    ],
)
def test_a_long_line_of_few_letters_was_not_read(text: str, width: float, share: float) -> None:
    """Of an alphabet that the models do not know they read a point here and there, and are sure of it."""
    assert filled(layout.Line(text, 0.99, 0, 0, width, 40)) == pytest.approx(share, abs=0.01)
