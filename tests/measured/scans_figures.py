"""Measures the reading of documents on the labelled set: ``python -m tests.measured.scans_figures [half] [id …]``.

A half takes several minutes: every page that has no text of its own goes through the OCR models.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from actors.document.boost import boost_page
from actors.document.config import DocumentSettings
from actors.document.local_engine import LocalEngine, load_models
from actors.document.pdf import open_pdf
from actors.document.reading import read_page
from tests.actors.document.accuracy import accuracy
from tests.measured.scans_drawn import pdf_of
from tests.measured.test_sets import HALVES, Row, rows

RIGHT, WRONG = 0.98, 0.90


@dataclass(frozen=True)
class Page:
    """One page as it was read. ``accuracy`` is the share of its characters that is right."""

    name: str
    form: str
    readable: bool
    digital: bool
    accuracy: float
    confidence: float | None
    engine: str
    doubt: str | None
    seconds: float

    @property
    def is_right(self) -> bool:
        """Read well and believed, or so hard to read that it may be wrong, but then with a doubt."""
        if self.readable:
            return self.accuracy >= RIGHT and self.doubt is None
        return self.accuracy >= RIGHT or self.doubt is not None

    @property
    def is_wrong_unnoticed(self) -> bool:
        """What must never be."""
        return self.accuracy < WRONG and self.doubt is None

    def __str__(self) -> str:
        sure = "unknown" if self.confidence is None else f"{self.confidence:.3f}"
        return (
            f"{self.name} {self.form}: {self.accuracy:.2%}, confidence {sure}, {self.engine}, "
            f"{self.seconds:.2f} s{f', doubtful: {self.doubt}' if self.doubt else ''}"
        )


def measure(documents: Iterable[Row]) -> Iterator[Page]:
    """Every page of the documents, as the ocr phase reads it, with the CPU time that it took."""
    engine, settings = LocalEngine(), DocumentSettings()
    load_models()(_nothing(), use_det=False, use_cls=False, use_rec=True)
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as loop:
        for document in documents:
            path = Path(folder) / "document.pdf"
            path.write_bytes(pdf_of(document))
            with open_pdf(path, settings) as pdf:
                for number, page in enumerate(document["pages"], start=1):
                    begun = time.process_time()
                    found = loop.run(read_page(*pdf.page(number), engine, "", settings.doubt_below))
                    seconds = time.process_time() - begun
                    text = boost_page(found.text.paragraphs)
                    yield Page(
                        f"{document['id']}.{number}",
                        document["form"],
                        not page.get("doubtful"),
                        page["source"] == "digital" and page["text_layer"]["kind"] == "good",
                        accuracy(page["expected"], text),
                        found.text.confidence,
                        found.engine,
                        found.doubt,
                        seconds,
                    )


def summary(pages: list[Page]) -> str:
    """The figures that count, in one line."""
    readable = [page for page in pages if page.readable]
    digital = [page.seconds for page in pages if page.digital]
    return (
        f"{len(pages)} pages: {sum(page.accuracy >= RIGHT for page in readable)} of {len(readable)} readable ones with "
        f"at least {RIGHT:.0%} of their characters right, {sum(page.doubt is not None for page in readable)} of them "
        f"doubted; {sum(page.is_wrong_unnoticed for page in pages)} below {WRONG:.0%} without a doubt; "
        f"born digital: at most {max(digital, default=0):.2f} s a page"
    )


def _nothing() -> object:
    import numpy

    return numpy.full((48, 320, 3), 255, "uint8")


def main(arguments: list[str]) -> None:
    """Print each page and the sums."""
    halves = [half for half in HALVES if half in arguments] or list(HALVES)
    wanted = set(arguments) - set(HALVES)
    for half in halves:
        found: list[Page] = []
        for page in measure(row for row in rows("scans", half) if not wanted or row["id"] in wanted):
            found.append(page)
            print(page, flush=True)
        print(f"{half}: {summary(found)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
