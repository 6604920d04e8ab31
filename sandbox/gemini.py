"""Gemini's generateContent. It reads pictures of the registry's own pages, and gives other text back as it came."""

from __future__ import annotations

import base64
import io
from functools import lru_cache
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from sandbox import papers

THUMBNAIL = (48, 64)


def routes() -> list[BaseRoute]:
    """``POST /gemini/v1beta/models/{model}:generateContent``."""
    return [Route("/gemini/v1beta/models/{model}:generateContent", _generate, methods=["POST"])]


async def _generate(request: Request) -> Response:
    if request.headers.get("x-goog-api-key") == "wrong":
        return _error(400, "API key not valid. Please pass a valid API key.")
    try:
        parts = (await request.json())["contents"][0]["parts"]
        return JSONResponse(await run_in_threadpool(_answer, parts))
    except (ValueError, LookupError, TypeError, OSError):
        return _error(400, "contents with parts (text or inline_data) are required")


def _answer(parts: list[dict[str, Any]]) -> dict[str, Any]:
    picture = next((part["inline_data"]["data"] for part in parts if "inline_data" in part), None)
    asked = "\n".join(part["text"] for part in parts if "text" in part)
    # a question about a text is an instruction, a blank line, and the text
    text = asked.partition("\n\n")[2] if picture is None else read(base64.b64decode(picture))
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}


def read(picture: bytes) -> str:
    """The source text of the registry's page that looks most like this picture."""
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as opened:
        seen = _small(opened)
    return min(_pages(), key=lambda page: sum((a - b) ** 2 for a, b in zip(seen, page[0], strict=True)))[1]


@lru_cache(maxsize=1)
def _pages() -> list[tuple[bytes, str]]:
    return [
        (_small(picture), text)
        for paper in papers.PAPERS.values()
        if paper.pages
        for picture, text in zip(papers.pictures(papers.pdf(paper.number)), paper.pages, strict=True)
    ]


def _small(picture: Any) -> bytes:
    return bytes(picture.convert("L").resize(THUMBNAIL).tobytes())


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}, status)
