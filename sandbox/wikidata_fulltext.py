"""``list=search`` as CirrusSearch runs it on Wikidata: words of labels, aliases and descriptions, in any order.

All words must be there. Typing errors are forgiven only where the query says ``word~``, and never in the first two
letters. ``OR``, ``-word``, ``"a phrase"``, ``wo*d`` and ``haswbstatement:P31=Q5|P31=Q43229`` are understood.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from math import log

from rapidfuzz.distance import OSA

from sandbox.wikidata_entity import Entity
from sandbox.wikidata_query import Clause, parse
from sandbox.wikidata_text import line, words

SAME_FIRST_LETTERS, MOST_SPELLINGS = 2, 50
EXACT_LABEL = 20.0
Scores = dict[str, float]


class FullTextIndex:
    """Which words stand in which entities."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self._all = {entity.qid: entity for entity in entities}
        self._texts: dict[str, list[tuple[str, ...]]] = {}
        self._with: dict[str, set[str]] = defaultdict(set)
        self._called: dict[str, set[str]] = defaultdict(set)
        for entity in self._all.values():
            self._add(entity)
        self._beginning: dict[str, list[str]] = defaultdict(list)
        for word in sorted(self._with):
            self._beginning[word[:SAME_FIRST_LETTERS]].append(word)
        self.search = lru_cache(maxsize=20_000)(self._search)

    def _add(self, entity: Entity) -> None:
        names = [text for _, _, text in entity.terms()]
        self._texts[entity.qid] = [words(text) for text in (*names, *entity.descriptions.values())]
        for word in {word for text in self._texts[entity.qid] for word in text}:
            self._with[word].add(entity.qid)
        for name in names:
            self._called[line(name)].add(entity.qid)

    def _search(self, question: str) -> tuple[str, ...]:
        """Numbers of entities, best first."""
        query = parse(question)
        found = self._combined(query.clauses) if query.clauses else dict.fromkeys(self._all, 0.0)
        for alternatives in query.statements:
            found = {qid: score for qid, score in found.items() if self._says(qid, alternatives)}
        for qid in self._called.get(line(query.text), set()) & found.keys():
            found[qid] += EXACT_LABEL
        return tuple(sorted(found, key=lambda qid: (-found[qid], self._all[qid].number)))

    def _combined(self, clauses: tuple[Clause, ...]) -> Scores:
        """What must be there narrows, what may be there adds to the score; one of these will do if nothing must."""
        scored = [(clause, self._matches(clause)) for clause in clauses]
        required = [found for clause, found in scored if clause.how == "must"]
        wanted = [found for clause, found in scored if clause.how == "may"]
        among = set.intersection(*map(set, required)) if required else set().union(*wanted)
        among -= {qid for clause, found in scored if clause.how == "not" for qid in found}
        return {qid: sum(found.get(qid, 0.0) for found in (*required, *wanted)) for qid in among}

    def _matches(self, clause: Clause) -> Scores:
        if clause.kind == "phrase":
            wanted = words(clause.text)
            held = set.intersection(*(self._with.get(word, set()) for word in wanted)) if wanted else set()
            return {qid: 2.0 * len(wanted) for qid in held if self._in_a_row(qid, wanted)}
        if clause.kind in ("fuzzy", "wildcard"):
            return self._any_of(self._spellings(clause))
        parts = [self._any_of({word: 1.0}) for word in words(clause.text)]
        together = set.intersection(*map(set, parts)) if parts else set()
        return {qid: sum(part[qid] for part in parts) for qid in together}

    def _any_of(self, spellings: dict[str, float]) -> Scores:
        found: Scores = {}
        for word, worth in spellings.items():
            held = self._with.get(word, set())
            score = worth * log(1 + len(self._all) / max(len(held), 1))
            found |= {qid: max(score, found.get(qid, 0.0)) for qid in held}
        return found

    def _spellings(self, clause: Clause) -> dict[str, float]:
        if clause.kind == "wildcard":
            pattern = clause.pattern
            return {word: 1.0 for word in self._with if word[0] == clause.text[0] and pattern.fullmatch(word)}
        near = {
            word: distance
            for word in self._beginning.get(clause.text[:SAME_FIRST_LETTERS], ())
            if (distance := OSA.distance(clause.text, word, score_cutoff=clause.edits)) <= clause.edits
        }
        nearest = sorted(near, key=lambda word: (near[word], word))[:MOST_SPELLINGS]
        return {word: 1 - near[word] / max(len(clause.text), 1) for word in nearest}

    def _in_a_row(self, qid: str, wanted: tuple[str, ...]) -> bool:
        size = len(wanted)
        return any(text[at : at + size] == wanted for text in self._texts[qid] for at in range(len(text) - size + 1))

    def _says(self, qid: str, alternatives: tuple[str, ...]) -> bool:
        """Statements of every rank are indexed, deprecated ones too."""
        claims = self._all[qid].claims
        for said in alternatives:
            prop, _, value = said.partition("=")
            if any(not value or statement.value == value for statement in claims.get(prop, ())):
                return True
        return False
