"""Gemini's generateContent: read a page's picture, or clean up its text. The key never shows in a repr or an error."""

from __future__ import annotations

import base64
import io
import json
from typing import TYPE_CHECKING, Any

import httpx

from actors.document.boost import tidy
from actors.document.config import DocumentSettings, only
from actors.document.engines import Recognised
from pipeline import Permanent, Transient
from pipeline.http.client import MEBIBYTE, Fetched, Limits, post
from pipeline.http.refusals import answered, refusal

if TYPE_CHECKING:
    from PIL.Image import Image

READ = (
    "Transcribe the text of this scanned page exactly as printed, accents included. Keep the line breaks, put a blank "
    "line between paragraphs, read columns one after the other. Answer with the text alone; for an empty page, with "
    "nothing."
)


class GeminiEngine:
    """An OcrEngine that sends each page to Gemini."""

    def __init__(self, settings: DocumentSettings) -> None:
        self._settings = settings
        self.name = settings.gemini_model

    async def read(self, page: Image, key: str) -> Recognised:
        """The page's text as the model transcribed it; its confidence is not known."""
        file = io.BytesIO()
        page.save(file, "JPEG", quality=85)
        picture = {"inline_data": {"mime_type": "image/jpeg", "data": base64.b64encode(file.getvalue()).decode()}}
        text = await generate(self._settings, [picture, {"text": READ}], key)
        paragraphs = [[tidy(line) for line in part.splitlines() if line.strip()] for part in text.split("\n\n")]
        return Recognised([lines for lines in paragraphs if lines])


async def generate(settings: DocumentSettings, parts: list[dict[str, Any]], key: str) -> str:
    """One question. A refusal is raised as what it means for the job: Retry-After is waited for."""
    question = {"contents": [{"role": "user", "parts": parts}], "generationConfig": {"temperature": 0}}
    headers = {"Content-Type": "application/json", "X-Request-Id": key}
    if settings.gemini_api_key:
        headers["x-goog-api-key"] = settings.gemini_api_key.get_secret_value()
    answer = await post(
        f"{settings.gemini}/models/{settings.gemini_model}:generateContent",
        json.dumps(question).encode(),
        policy=only(settings.gemini),
        limits=Limits(read=settings.gemini_seconds, total=settings.gemini_seconds, max_raw=MEBIBYTE, max_body=MEBIBYTE),
        headers=headers,
    )
    if answer.status != httpx.codes.OK:
        raise refusal(answered(settings.gemini_model, answer.status), answer.status, answer.headers)
    return _text(settings.gemini_model, answer)


def _text(model: str, answer: Fetched) -> str:
    try:
        found = json.loads(answer.body)
        if (found.get("promptFeedback") or {}).get("blockReason"):
            raise Permanent(f"{model} refused to read this page")
        candidate = found["candidates"][0]
        parts = candidate.get("content", {}).get("parts", [])
        text = "".join(part["text"] for part in parts)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Transient(f"{model} sent something else than generated content") from None
    if candidate.get("finishReason", "STOP") != "STOP":
        raise Permanent(f"{model} did not finish this page: {str(candidate['finishReason'])[:50]}")
    return text
