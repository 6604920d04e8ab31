"""``wbsearchentities`` as Wikibase runs it on Elasticsearch: labels and aliases that begin with the text, no more.

The beginning may be of a label in any language; what language was asked for decides the order. There is no tolerance
for typing errors or for another order of words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from sandbox.wikidata_entity import Entity
from sandbox.wikidata_text import line, plain_line

# The weights of Wikibase's default profile: exact, exact but for accents, begins so.
IN_LANGUAGE, IN_FALLBACK = (2.0, 1.6, 1.1), (1.9, 1.3, 0.4)
DISCOUNT, ANYWHERE = 0.9, 0.001


@dataclass(frozen=True)
class Hit:
    """An entity and the term by which it was found."""

    entity: Entity
    kind: str
    language: str
    text: str
    score: float


class PrefixIndex:
    """Every label and alias, sorted, so that a beginning is a range."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        terms = ((line(text), entity, kind, code, text) for entity in entities for kind, code, text in entity.terms())
        self._terms = sorted(terms, key=lambda term: term[0])
        self._lines = [term[0] for term in self._terms]
        self.search = lru_cache(maxsize=20_000)(self._search)

    def _search(self, text: str, language: str, strict: bool = False) -> tuple[Hit, ...]:
        """Best first; of equals the one with the lower number."""
        wanted, exact = line(text.lstrip()), plain_line(text.strip())
        if not wanted.strip():
            return ()
        codes = chain(language)[:2] if strict else chain(language)
        best: dict[str, Hit] = {}
        for place in range(bisect_left(self._lines, wanted), len(self._lines)):
            if not self._lines[place].startswith(wanted):
                break
            folded, entity, kind, code, said = self._terms[place]
            if strict and code not in codes:
                continue
            score = _score(codes, code, plain_line(said) == exact, folded == wanted.strip())
            if entity.qid not in best or best[entity.qid].score < score:
                best[entity.qid] = Hit(entity, kind, code, said, score)
        return tuple(sorted(best.values(), key=lambda hit: (-hit.score, hit.entity.number)))


def chain(language: str) -> tuple[str, ...]:
    """The language, what it is a variant of, then what holds for all languages, then English."""
    return tuple(dict.fromkeys((language, language.partition("-")[0], "mul", "en")))


def _score(codes: tuple[str, ...], code: str, same: bool, same_folded: bool) -> float:
    if code not in codes:
        return ANYWHERE if same_folded else 0.0
    place = codes.index(code)
    exact, folded, begins = IN_FALLBACK if place else IN_LANGUAGE
    return (exact if same else folded if same_folded else begins) * DISCOUNT**place
