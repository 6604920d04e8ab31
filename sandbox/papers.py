"""The registry's PDFs, made at their first use: scans without a text layer, and every kind of bad file.

A page is set in a font that the PDF renderer brings along, rendered, made to look scanned (a slight turn, paper
grey, grain), and put into a new PDF as a picture only.
"""

from __future__ import annotations

import io
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from threading import RLock
from typing import TYPE_CHECKING

from sandbox import paper_texts, raw_pdf

if TYPE_CHECKING:
    from PIL import Image

DPI = 150
LINE_LETTERS = 78
MARGIN, TOP, LEADING = 60, 770, 20
# A damaged file is made from a good one, by the same thread.
_MAKING = RLock()


@dataclass(frozen=True)
class Paper:
    """A document of the registry. ``pages`` are their source texts; a bad file has none."""

    number: str
    title: str
    make: Callable[[], bytes]
    pages: tuple[str, ...] = ()


def paper(number: str) -> Paper | None:
    """The document with this number."""
    return PAPERS.get(number)


def pdf(number: str) -> bytes:
    """The file of a document; made once, by one thread at a time: the renderer knows no threads and would crash."""
    with _MAKING:
        return _made(number)


@lru_cache(maxsize=32)
def _made(number: str) -> bytes:
    return PAPERS[number].make()


def scan(pages: Sequence[Sequence[raw_pdf.Line]]) -> bytes:
    """A PDF of pictures that look like scans of the printed pages."""
    return bound([_scanned(picture, n) for n, picture in enumerate(pictures(raw_pdf.printed(pages)))])


def bound(pictures: Sequence[Image.Image]) -> bytes:
    """A PDF with a page for each picture."""
    first, *rest = pictures
    file = io.BytesIO()
    long_ago = time.gmtime(0)
    first.save(
        file,
        "PDF",
        save_all=True,
        append_images=rest,
        resolution=DPI,
        quality=75,
        creationDate=long_ago,
        modDate=long_ago,
    )
    return file.getvalue()


def pictures(file: bytes) -> list[Image.Image]:
    """Every page of a PDF as a grey picture."""
    import pypdfium2  # type: ignore[import-untyped]  # ships no types

    document = pypdfium2.PdfDocument(file)
    try:
        return [page.render(scale=DPI / 72, grayscale=True).to_pil() for page in document]
    finally:
        document.close()


def _scanned(page: Image.Image, number: int) -> Image.Image:
    from PIL import Image, ImageChops

    turned = page.rotate((-0.4, 0.3, 0.5)[number % 3], Image.Resampling.BICUBIC, fillcolor=255)
    chance = Random(number).randbytes(page.width * page.height)  # noqa: S311  grain, and the same every time
    grain = Image.frombytes("L", page.size, chance).point(lambda level: 225 + level // 9)
    return ImageChops.multiply(turned, grain)


def _column(paragraphs: Sequence[str]) -> list[raw_pdf.Line]:
    lines, y = [], TOP
    for paragraph in paragraphs:
        for words in textwrap.wrap(paragraph, LINE_LETTERS, break_on_hyphens=False):
            lines.append(raw_pdf.Line(MARGIN, y, words))
            y -= LEADING
        y -= LEADING
    return lines


def _gazette() -> list[raw_pdf.Line]:
    lines = [raw_pdf.Line(200, TOP, paper_texts.GAZETTE_TITLE)]
    for x, column in ((MARGIN, paper_texts.GAZETTE_LEFT), (320, paper_texts.GAZETTE_RIGHT)):
        lines += [raw_pdf.Line(x, TOP - 60 - LEADING * n, words) for n, words in enumerate(column)]
    return lines


def _texts(pages: Sequence[paper_texts.Page]) -> tuple[str, ...]:
    return tuple("\n\n".join(page) for page in pages)


def _deed() -> bytes:
    return scan([_column(page) for page in paper_texts.DEED])


def _turned() -> bytes:
    """Each page another way up, as a scanner's feeder takes them."""
    printed = pictures(raw_pdf.printed([_column(page) for page in paper_texts.DEED[:3]]))
    return bound([_scanned(picture, n).rotate(90 * (n + 1), expand=True) for n, picture in enumerate(printed)])


def _faint() -> bytes:
    [printed] = pictures(raw_pdf.printed([_column(page) for page in paper_texts.NOTE]))
    return bound([_scanned(printed, 0).point(lambda level: 150 + level * 2 // 5)])


def _digital() -> bytes:
    return raw_pdf.printed([_column(page) for page in paper_texts.NOTE])


def _with_zeros() -> bytes:
    return pdf("RF-1937-0118") + bytes(4096)


def _half() -> bytes:
    deed = pdf("RF-1937-0117")
    return deed[: len(deed) // 2]


PAPERS = {
    entry.number: entry
    for entry in (
        Paper("RF-1937-0117", "Acte de vente d'un verger", _deed, _texts(paper_texts.DEED)),
        Paper("RF-1937-0118", "Reçu", lambda: scan([_column(p) for p in paper_texts.NOTE]), _texts(paper_texts.NOTE)),
        Paper("RF-1938-0042", "Gazette du canal", lambda: scan([_gazette()]), (paper_texts.GAZETTE_TEXT,)),
        Paper("RF-1939-0001", "Acte numérisé en tous sens", _turned, _texts(paper_texts.DEED[:3])),
        Paper("RF-1939-0002", "Reçu pâli", _faint, _texts(paper_texts.NOTE)),
        Paper("RF-1939-0003", "Reçu, avec des zéros après sa fin", _with_zeros, _texts(paper_texts.NOTE)),
        Paper("RF-1939-0004", "Reçu, fait à l'ordinateur", _digital, _texts(paper_texts.NOTE)),
        Paper("BAD-ENCRYPTED", "Locked with a password", raw_pdf.encrypted),
        Paper("BAD-TRUNCATED", "Half of a file", _half),
        Paper("BAD-ZERO-PAGES", "A file without pages", raw_pdf.without_pages),
        Paper("BAD-PAGE-BOMB", "Ten thousand pages in under a kilobyte", raw_pdf.page_bomb),
        Paper("BAD-GIANT-PAGE", "A page of seventy metres", raw_pdf.giant_page),
        Paper("BAD-NOT-A-PDF", "A picture under a wrong name", lambda: b"\x89PNG\r\n\x1a\n" + bytes(2000)),
    )
}
