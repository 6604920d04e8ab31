"""Hostile PDFs: each has its own words, before anything is rendered."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.document.config import DocumentSettings
from actors.document.pdf import Unreadable, open_pdf
from sandbox.papers import pdf
from sandbox.raw_pdf import Line, printed

PAGE = printed([[Line(60, 700, "Bonjour")]])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (pdf("BAD-ENCRYPTED"), "encrypted"),
        (pdf("BAD-ZERO-PAGES"), "no pages"),
        (pdf("BAD-PAGE-BOMB"), "10000 pages, the limit is 500"),
        (pdf("BAD-GIANT-PAGE"), "too large to render"),
        (PAGE[: len(PAGE) // 2], "truncated"),
        (PAGE.replace(b"%%EOF", b""), "truncated"),  # the renderer would repair this one
        (b"%PDF-1.4\n%%EOF\n", "damaged"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 20 + b"%%EOF", "damaged"),
        (b"", "truncated"),
    ],
)
def test_every_bad_file_is_refused_with_its_reason(tmp_path: Path, content: bytes, says: str) -> None:
    """At once: no page of it is rendered."""
    path = tmp_path / "bad.pdf"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match=says), open_pdf(path, DocumentSettings()):
        pass


@pytest.mark.parametrize(
    "content",
    [
        PAGE + bytes(100_000),
        PAGE + b"\r\n<!-- served by node 3 -->\r\n" * 200,
        b"\r\n" * 20 + PAGE,
        PAGE.replace(b"startxref\n", b"startxref\n9"),
        PAGE.replace(b"xref\n0", b"    \n0", 1),
    ],
)
def test_a_whole_file_is_read_whatever_stands_around_it(tmp_path: Path, content: bytes) -> None:
    """And whatever its cross-references say."""
    path = tmp_path / "odd.pdf"
    path.write_bytes(content)
    with open_pdf(path, DocumentSettings(dpi=72)) as opened:
        assert [word.text for line in opened.page(1)[1] for word in line] == ["Bonjour"]


def test_an_update_that_was_cut_off_is_not_taken_for_bytes_behind_the_end(tmp_path: Path) -> None:
    """The file as it was before the update is not the document."""
    path = tmp_path / "updated.pdf"
    path.write_bytes(PAGE + b"5 0 obj\n<</Length 20>>stream\nBT /F 14 Tf")
    with pytest.raises(Unreadable, match="truncated"), open_pdf(path, DocumentSettings()):
        pass


def test_the_limits_can_be_set_and_are_named(tmp_path: Path) -> None:
    """The message says which setting to raise."""
    path = tmp_path / "two.pdf"
    path.write_bytes(printed([[], []]))
    with pytest.raises(Unreadable, match="MAX_PAGES"), open_pdf(path, DocumentSettings(max_pages=1)):
        pass
    with pytest.raises(Unreadable, match="MAX_PIXELS"), open_pdf(path, DocumentSettings(max_pixels=100)):
        pass
    with open_pdf(path, DocumentSettings(dpi=72)) as opened:
        assert (opened.pages, opened.page(2)[0].size) == (2, (595, 842))
