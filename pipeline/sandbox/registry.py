"""The document registry: login, search, PDFs."""

from __future__ import annotations

from starlette.routing import BaseRoute


def routes() -> list[BaseRoute]:
    """Nothing yet."""
    return []
