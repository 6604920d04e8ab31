"""Wikidata's search and entity API, over a set of made-up records."""

from __future__ import annotations

from starlette.routing import BaseRoute


def routes() -> list[BaseRoute]:
    """Nothing yet."""
    return []
