"""One page: the PDF's own text if the page shows the same, or else what an engine reads; and whether to doubt it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from actors.document.engines import OcrEngine, Recognised
from actors.document.ink import is_empty
from actors.document.layout import paragraphs
from actors.document.local_engine import read_line
from actors.document.text_layer import Word, agreement, as_lines

if TYPE_CHECKING:
    from PIL.Image import Image

TEXT_LAYER = "text layer"


@dataclass(frozen=True)
class Read:
    """A page's text, what it was read with, and why it may be wrong, if there is a reason."""

    text: Recognised
    engine: str
    doubt: str | None


async def read_page(page: Image, layer: list[list[Word]], engine: OcrEngine, key: str, sure: float) -> Read:
    """The text of a page, given its picture and its text layer; doubted if its confidence is below ``sure``."""
    if layer and (same := _agreement(page, layer)):
        return Read(Recognised(paragraphs(as_lines(layer, same)), same), TEXT_LAYER, None)
    found = await engine.read(page, key)
    return Read(found, engine.name, _doubt(found, page, sure))


def _agreement(page: Image, layer: list[list[Word]]) -> float:
    return agreement(layer, _grey(page), read_line)


def _doubt(found: Recognised, page: Image, sure: float) -> str | None:
    if found.confidence is not None and found.confidence < sure:
        return f"read with a confidence of {found.confidence:.2f}"
    if not found.paragraphs and not is_empty(_grey(page)):
        return "the page is not empty, but no text was found on it"
    return None


def _grey(page: Image) -> Any:
    import numpy

    return numpy.asarray(page.convert("L"))
