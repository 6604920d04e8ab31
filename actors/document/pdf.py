"""Open a PDF that may be hostile, and render its pages within bounds. Every way to be unreadable has its own words."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.document.config import DocumentSettings
from actors.document.text_layer import Word, layer_of
from pipeline import Permanent

if TYPE_CHECKING:
    from PIL.Image import Image

END, OBJECT = b"%%EOF", b" obj"
POINTS_PER_INCH = 72


class Unreadable(Permanent):
    """The PDF cannot be read, and never will be."""


class PdfFile:
    """An open PDF whose page count and page sizes are within bounds."""

    def __init__(self, document: Any, settings: DocumentSettings) -> None:
        self._document = document
        self._scale = settings.dpi / POINTS_PER_INCH
        self.pages = len(document)
        self._check(settings)

    def page(self, page: int) -> tuple[Image, list[list[Word]]]:
        """Page number ``page`` (from 1) as a grey picture, and the words of its text layer, line by line."""
        with _readable(page):
            opened = self._document[page - 1]
            try:
                picture: Image = opened.render(scale=self._scale, grayscale=True).to_pil()
                return picture, layer_of(opened, picture.size)
            finally:
                opened.close()

    def _check(self, settings: DocumentSettings) -> None:
        if self.pages == 0:
            raise Unreadable("the PDF has no pages")
        if self.pages > settings.max_pages:
            raise Unreadable(
                f"the PDF has {self.pages} pages, the limit is {settings.max_pages} (PIPELINE_DOCUMENT_MAX_PAGES)"
            )
        for page in range(self.pages):
            with _readable(page + 1):
                width, height = self._document.get_page_size(page)
            # written so that a size that is no number is refused as well
            if not 0 < width * height * self._scale**2 <= settings.max_pixels:
                raise Unreadable(
                    f"page {page + 1} of the PDF measures {width:.0f} × {height:.0f} points, too large to render at "
                    f"{settings.dpi} dpi: the limit is {settings.max_pixels} pixels (PIPELINE_DOCUMENT_MAX_PIXELS)"
                )


@contextmanager
def open_pdf(path: Path, settings: DocumentSettings) -> Iterator[PdfFile]:
    """The PDF at ``path``; raises Unreadable with the reason if it is encrypted, cut off, damaged, empty or too big."""
    # native: only a process that reads documents loads it
    import pypdfium2  # type: ignore[import-untyped]  # ships no types

    whole = _has_end(path)
    # A file without pages fails without an error code, and would show that of an earlier file: from here on
    # "no such file" stands for it, because this file is there.
    pypdfium2.raw.FPDF_LoadDocument(b"", None)
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise _reason(getattr(error, "err_code", None), whole) from None
    try:
        if not whole:
            # the renderer repairs what it can, and would return a part of the document as the whole
            raise _reason(pypdfium2.raw.FPDF_ERR_FORMAT, whole)
        yield PdfFile(document, settings)
    finally:
        document.close()


@contextmanager
def _readable(page: int) -> Iterator[None]:
    """What the renderer cannot read now it cannot read later either."""
    import pypdfium2

    try:
        yield
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"the PDF is damaged: page {page} cannot be read ({error})") from None


def _has_end(path: Path) -> bool:
    """Servers and mailers add bytes behind a file; an update that was cut off has begun with an object."""
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        end = content.rfind(END)
        return end >= 0 and content.find(OBJECT, end) < 0


def _reason(code: int | None, whole: bool) -> Unreadable:
    from pypdfium2 import raw

    if code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
        return Unreadable("the PDF is encrypted: it opens only with a password")
    if not whole:
        return Unreadable("the PDF is truncated: its end is missing")
    if code == raw.FPDF_ERR_FILE:
        return Unreadable("the PDF has no pages")
    return Unreadable("the PDF is damaged: it cannot be parsed")
