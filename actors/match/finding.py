"""Finding a record's candidates: one question after the other, the cheapest first, until the record is decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from actors.match.candidates import Candidate
from actors.match.decide import SAME_NAME, Decision, ProjectSettings, decide, is_settled
from actors.match.memory import Memory
from actors.match.queries import Query, queries, with_year
from actors.match.records import Record
from actors.match.score import Scored, name_worth, rank
from actors.match.surroundings import Surroundings, known_of
from actors.match.wikidata import MOST_IDS, Hits, Wikidata

# A label that is less like the name than this is not worth a look at its entity.
WORTH_A_LOOK = 0.80
MOST_SEARCHES = 6
# Comparing more candidates than this takes long enough for others to notice.
FEW = 10
Found = TypeVar("Found")


class Finding:
    """One record's search. ``memory`` keeps each answer under its question: a later attempt does not ask again."""

    def __init__(self, wikidata: Wikidata, record: Record, settings: ProjectSettings, memory: Memory) -> None:
        self._wikidata = wikidata
        self._record = record
        self._settings = settings
        self._memory = memory
        self._around = Surroundings(known_of(wikidata.address))
        self._candidates: dict[str, Candidate] = {}
        self._fetched: set[str] = set()

    async def run(self) -> tuple[list[Scored], Decision]:
        """The ranked candidates and what they come to."""
        judged = await self._judge() if self._memory.has_news else None
        while (query := self._next()) and not (judged and is_settled(*judged, self._settings)):
            await self._ask(query)
            judged = await self._judge()
        return judged or await self._judge()

    def _next(self) -> Query | None:
        """The next question, if there is one: more namesakes first, where the record can tell them apart."""
        memory, record = self._memory, self._record
        if len(memory.asked) >= MOST_SEARCHES:
            return None
        more = [query.next_page() for query in memory.unanswered()] if record.dates else []
        by_year = with_year(record) if more else None
        for query in (by_year, *more, *queries(record)):
            # Misspelt names are not looked for where the name as it is has bearers.
            if query and not memory.has(query) and not (query.is_loose and memory.has_bearers):
                return query
        return None

    async def _ask(self, query: Query) -> None:
        hits = await self._wikidata.search(query, self._record.language or self._settings.languages[0])
        self._memory.add(query, self._promising(query, hits), self._has_more_namesakes(query, hits))

    def _promising(self, query: Query, hits: Hits) -> list[str]:
        """Of labels that begin so, those that are not much longer. A search for words says no labels."""
        worth = (hit for hit in hits.found if not hit.text or name_worth(self._record, hit.text) >= WORTH_A_LOOK)
        return [hit.qid for hit in worth]

    def _has_more_namesakes(self, query: Query, hits: Hits) -> bool:
        """On the next page: not if this one ends with longer names. Of a loose search only the first page counts."""
        if not hits.more or query.is_loose:
            return False
        last = hits.found[-1].text if hits.found else ""
        return not last or name_worth(self._record, last) >= SAME_NAME

    async def _judge(self) -> tuple[list[Scored], Decision]:
        """Of all that was found, by this attempt and those before."""
        await self._fetch([qid for qid in dict.fromkeys(self._memory.ids()) if qid not in self._fetched])
        await self._look_around()
        ranked = await _aside(
            len(self._candidates), lambda: rank(self._record, self._candidates.values(), self._around)
        )
        self._memory.has_news = False
        self._memory.has_bearers = any(scored.name >= SAME_NAME for scored in ranked)
        return ranked, decide(ranked, self._settings, self._memory.unseen())

    async def _fetch(self, ids: Sequence[str]) -> None:
        languages = tuple(filter(None, (*self._settings.languages, self._record.language)))
        for first in range(0, len(ids), MOST_IDS):
            some = ids[first : first + MOST_IDS]
            for candidate in await self._wikidata.entities(some, languages):
                self._candidates.setdefault(candidate.qid, candidate)
            self._fetched.update(some)

    async def _look_around(self) -> None:
        """Classes and places of those whose name fits, as far as the record says something about them."""
        record, around = self._record, self._around
        fitting = [candidate for candidate in self._candidates.values() if self._fits(candidate)]
        if record.classes:
            types = {qid for c in fitting if not record.classes & c.types for qid in c.types}
            await around.look_up(self._wikidata, types)
        if record.country:
            await around.look_up(self._wikidata, {qid for c in fitting for qid in c.countries}, steps=1)
        if any(reading.within for reading in record.meanings):
            await around.look_up(self._wikidata, {qid for c in fitting for qid in c.lies_in | c.countries})

    def _fits(self, candidate: Candidate) -> bool:
        return any(name_worth(self._record, term.text) >= WORTH_A_LOOK for term in candidate.terms)


async def _aside(candidates: int, work: Callable[[], Found]) -> Found:
    return work() if candidates <= FEW else await asyncio.to_thread(work)
