"""Wikidata's API: search for names, fetch entities. Every way it can refuse ends as a wait, a retry or a failure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import httpx

from actors.match.config import MatchSettings
from actors.match.records import Candidate, read_candidate
from actors.reading import read_in_time
from pipeline import Permanent, Transient, retry_after
from pipeline.http.client import Fetched, fetch

# A search takes a name, not a novel: 120 letters of three bytes each stay below the longest address.
LONGEST_SEARCH = 120
BUSY = frozenset({"maxlag", "ratelimited", "readonly"})
# Labels that are the same in all languages stand under this code only.
ALL_LANGUAGES = "mul"


class SlowDown(Exception):
    """Wikidata asks everybody to wait so many seconds."""

    def __init__(self, seconds: float, said: str) -> None:
        super().__init__(f"Wikidata asks to wait {seconds:g} s: {said}")
        self.seconds = seconds


class Wikidata:
    """The two questions that matching asks. ``headers`` go with every call, such as the trace."""

    def __init__(self, settings: MatchSettings, headers: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._headers = {**settings.headers, **(headers or {})}

    async def search(self, name: str, language: str, limit: int) -> list[str]:
        """Numbers of entities whose label or alias in that language is like ``name``, best first."""
        answer = await self._ask(
            action="wbsearchentities",
            search=name[:LONGEST_SEARCH],
            language=language,
            uselang=language,
            type="item",
            limit=limit,
        )
        found = answer.get("search")
        if not isinstance(found, list):
            raise Transient("Wikidata's search sent something else than a list of entities")
        ids = [item.get("id") for item in found if isinstance(item, dict)]
        return [str(qid) for qid in ids if is_number(qid)][:limit]

    async def entities(self, ids: Sequence[str], languages: tuple[str, ...]) -> list[Candidate]:
        """The entities in one call, in the order asked for; those that are gone are left out."""
        asked = (*languages, ALL_LANGUAGES)
        answer = await self._ask(
            action="wbgetentities",
            ids="|".join(ids),
            languages="|".join(asked),
            props="labels|aliases|descriptions|claims",
        )
        found = answer.get("entities")
        if not isinstance(found, dict):
            raise Transient("Wikidata sent something else than entities")
        read = (read_candidate(qid, found[qid], asked) for qid in ids if isinstance(found.get(qid), dict))
        return [candidate for candidate in read if candidate is not None]

    async def _ask(self, **question: Any) -> Mapping[str, Any]:
        settings = self._settings
        url = f"{settings.api}?{urlencode({**question, 'format': 'json', 'formatversion': 1, 'maxlag': 5})}"
        answer = await fetch(url, policy=settings.address_policy, limits=settings.limits, headers=self._headers)
        pause = retry_after(answer.headers.get("retry-after"), datetime.now(UTC))
        if answer.status == httpx.codes.TOO_MANY_REQUESTS or (answer.status >= 500 and pause is not None):
            raise SlowDown(settings.default_wait if pause is None else pause, f"status {answer.status}")
        answer.raise_for_status()
        said = await read_in_time(len(answer.body), _read, answer)
        _check(said, settings.default_wait if pause is None else pause)
        return said


def is_number(value: object) -> bool:
    """Whether it is an item's number, such as Q42."""
    return (
        isinstance(value, str) and value[:1] == "Q" and value[1:].isascii() and value[1:].isdigit() and len(value) < 16
    )


def _read(answer: Fetched) -> Mapping[str, Any]:
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise Transient("Wikidata's answer is not a JSON object")
    return said


def _check(said: Mapping[str, Any], pause: float) -> None:
    error = said.get("error")
    if not isinstance(error, dict):
        return
    code, info = str(error.get("code", "unknown"))[:60], str(error.get("info", ""))[:200]
    if code in BUSY:
        raise SlowDown(pause, code)
    if code.startswith("internal_api_error"):
        raise Transient(f"Wikidata failed: {code}: {info}")
    raise Permanent(f"Wikidata refused the question: {code}: {info}")
