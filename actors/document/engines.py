"""What an OCR engine gives back, and which one the settings choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from actors.document.config import DocumentSettings

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Recognised:
    """A page's paragraphs in reading order, as printed lines.

    ``confidence`` is how much of what stands on the page was read right, 0 … 1; None if the engine does not say.
    """

    paragraphs: list[list[str]]
    confidence: float | None = None

    @property
    def text(self) -> str:
        """As printed: line by line, a blank line between paragraphs."""
        return "\n\n".join("\n".join(lines) for lines in self.paragraphs)


class OcrEngine(Protocol):
    """Reads pictures of pages. ``name`` is kept with the text."""

    name: str

    async def read(self, page: Image, key: str) -> Recognised:
        """The page's text; ``key`` is the same for every attempt at this page."""


def choose_engine(settings: DocumentSettings) -> OcrEngine:
    """The engine that the settings ask for; its models are loaded at the first page."""
    if settings.ocr_engine == "gemini":
        from actors.document.gemini import GeminiEngine

        return GeminiEngine(settings)
    from actors.document.local_engine import LocalEngine

    return LocalEngine()
