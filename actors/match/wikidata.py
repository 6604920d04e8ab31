"""Wikidata's API: two searches, and entities. Every way it can refuse ends as a wait, a retry or a failure."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import httpx

from actors.match.candidates import Candidate, Item, is_number, read_candidate, read_item
from actors.match.config import MatchSettings
from actors.match.queries import Query
from actors.reading import read_in_time
from pipeline import Permanent, Transient, retry_after
from pipeline.http.client import Fetched, TooLarge, fetch
from pipeline.http.refusals import require_success

# Both for those who are not bots.
MOST_HITS = MOST_IDS = 50
BUSY = frozenset({"maxlag", "ratelimited", "readonly"})
# Labels that are the same in all languages stand under this code only.
ALL_LANGUAGES = "mul"


Permit = Callable[[], Awaitable[None]]


class SlowDown(Exception):
    """Wikidata asks everybody to wait so many seconds."""

    def __init__(self, seconds: float, said: str) -> None:
        super().__init__(f"Wikidata asks to wait {seconds:g} s: {said}")
        self.seconds = seconds


@dataclass(frozen=True)
class Hit:
    """An entity's number, and the label or alias by which it was found, if the search says so."""

    qid: str
    text: str = ""


@dataclass(frozen=True)
class Hits:
    """One page of a search, best first. ``more``: there are others behind it."""

    found: tuple[Hit, ...] = ()
    more: bool = False


class Wikidata:
    """The questions that matching asks, each after ``permit`` allows it. ``headers`` go with every call."""

    def __init__(
        self, settings: MatchSettings, headers: Mapping[str, str] | None = None, permit: Permit | None = None
    ) -> None:
        self._settings = settings
        self._headers = {**settings.headers, **(headers or {})}
        self._permit = permit

    @property
    def address(self) -> str:
        """Where it asks."""
        return self._settings.api

    async def search(self, query: Query, language: str) -> Hits:
        """One page of up to fifty."""
        if query.search == "begins":
            return await self._begins_so(query, language)
        return await self._has_words(query, language)

    async def entities(self, ids: Sequence[str], languages: Sequence[str]) -> list[Candidate]:
        """Up to fifty entities, in the order asked for, in all languages; those that are gone are left out."""
        asked = (*languages, ALL_LANGUAGES)
        found = await self._get(ids, "labels|aliases|descriptions|claims")
        read = (read_candidate(qid, found[qid], asked) for qid in ids if isinstance(found.get(qid), dict))
        return [candidate for candidate in read if candidate is not None]

    async def items(self, ids: Sequence[str], languages: Sequence[str]) -> dict[str, Item]:
        """Up to fifty classes or places; what is gone is an item without anything above it."""
        asked = (*dict.fromkeys((*languages, "en", ALL_LANGUAGES)),)
        found = await self._get(ids, "labels|aliases|claims", "|".join(asked))
        return {qid: read_item(found[qid] if isinstance(found.get(qid), dict) else {}, asked) for qid in ids}

    async def _begins_so(self, query: Query, language: str) -> Hits:
        first = query.page * MOST_HITS
        answer = await self._ask(
            action="wbsearchentities",
            search=query.text,
            language=language,
            uselang=language,
            type="item",
            limit=MOST_HITS,
            **({"continue": first} if first else {}),
        )
        return Hits(_hits(answer.get("search"), "id"), "search-continue" in answer)

    async def _has_words(self, query: Query, language: str) -> Hits:
        answer = await self._ask(
            action="query",
            list="search",
            srsearch=query.text,
            srlimit=MOST_HITS,
            sroffset=query.page * MOST_HITS,
            srnamespace=0,
            srinfo="",
            srprop="",
            uselang=language,
        )
        found = answer.get("query")
        return Hits(_hits(found.get("search") if isinstance(found, dict) else None, "title"), "continue" in answer)

    async def _get(self, ids: Sequence[str], props: str, languages: str = "") -> Mapping[str, Any]:
        """Entities with thousands of statements can be too much for one answer: then half of them at a time."""
        asked = {"action": "wbgetentities", "ids": "|".join(ids), "props": props}
        try:
            answer = await self._ask(**asked, **({"languages": languages} if languages else {}))
        except TooLarge:
            if len(ids) == 1:
                # without it the record would be decided as if it did not exist
                raise
            half = len(ids) // 2
            return {**await self._get(ids[:half], props, languages), **await self._get(ids[half:], props, languages)}
        found = answer.get("entities")
        if not isinstance(found, dict):
            raise Transient("Wikidata sent something else than entities")
        return found

    async def _ask(self, **question: Any) -> Mapping[str, Any]:
        settings = self._settings
        if self._permit is not None:
            await self._permit()
        url = f"{settings.api}?{urlencode({**question, 'format': 'json', 'formatversion': 1, 'maxlag': 5})}"
        answer = await fetch(url, policy=settings.address_policy, limits=settings.limits, headers=self._headers)
        pause = retry_after(answer.headers.get("retry-after"), datetime.now(UTC))
        if answer.status == httpx.codes.TOO_MANY_REQUESTS or (answer.status >= 500 and pause is not None):
            raise SlowDown(settings.default_wait if pause is None else pause, f"status {answer.status}")
        require_success(answer)
        said = await read_in_time(len(answer.body), _read, answer)
        _check(said, settings.default_wait if pause is None else pause)
        return said


def _hits(found: object, number: str) -> tuple[Hit, ...]:
    if not isinstance(found, list):
        raise Transient("Wikidata's search sent something else than a list of entities")
    said = [(item.get(number), item.get("match")) for item in found if isinstance(item, dict)]
    hits = tuple(Hit(qid, _matched(match)) for qid, match in said if is_number(qid))
    if found and not hits:
        # an empty list is an answer, and would make the record one that nobody matches
        raise Transient("Wikidata's search sent a list without entities")
    return hits


def _matched(match: object) -> str:
    text = match.get("text") if isinstance(match, dict) else None
    return text if isinstance(text, str) else ""


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
