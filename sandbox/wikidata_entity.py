"""Entities of the pretended Wikidata, and the JSON that ``wbgetentities`` makes of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ENTITY = "http://www.wikidata.org/entity/"
TIMES = frozenset({"P569", "P570", "P571", "P577"})
STRINGS = frozenset({"P297"})
Terms = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Statement:
    """An entity's number, a date as precise as it is known, or a text; and its rank."""

    value: str
    rank: str = "normal"


@dataclass(frozen=True)
class Entity:
    """One item. With ``merged_into`` it is a redirect: what a search index that lags behind still finds of it."""

    qid: str
    labels: Mapping[str, str]
    descriptions: Mapping[str, str] = field(default_factory=dict)
    aliases: Terms = field(default_factory=dict)
    claims: Mapping[str, tuple[Statement, ...]] = field(default_factory=dict)
    merged_into: str = ""

    @property
    def number(self) -> int:
        """Without the Q."""
        return int(self.qid[1:])

    def terms(self) -> Iterable[tuple[str, str, str]]:
        """Kind, language and text of all labels and aliases."""
        yield from (("label", code, text) for code, text in self.labels.items())
        yield from (("alias", code, text) for code, texts in self.aliases.items() for text in texts)

    def shown(self, languages: Sequence[str] | None, props: frozenset[str]) -> dict[str, Any]:
        """With the parts and languages that were asked for; all languages if none were named."""
        parts = {
            "labels": {c: {"language": c, "value": text} for c, text in _in(self.labels, languages)},
            "descriptions": {c: {"language": c, "value": text} for c, text in _in(self.descriptions, languages)},
            "aliases": {c: [{"language": c, "value": t} for t in texts] for c, texts in _in(self.aliases, languages)},
            "claims": {prop: [_claim(self.qid, prop, s) for s in said] for prop, said in self.claims.items()},
        }
        page = {"pageid": self.number, "ns": 0, "title": self.qid, "lastrevid": 1, "modified": "2026-01-01T00:00:00Z"}
        head = page if "info" in props else {}
        return head | {"type": "item", "id": self.qid} | {name: part for name, part in parts.items() if name in props}


def _in(terms: Mapping[str, Any], languages: Sequence[str] | None) -> Iterable[tuple[str, Any]]:
    return ((code, value) for code, value in terms.items() if languages is None or code in languages)


def _claim(qid: str, prop: str, statement: Statement) -> dict[str, Any]:
    if prop in TIMES:
        datatype, value = "time", {"value": _time(statement.value), "type": "time"}
    elif prop in STRINGS:
        datatype, value = "external-id", {"value": statement.value, "type": "string"}
    else:
        item = {"entity-type": "item", "numeric-id": int(statement.value[1:]), "id": statement.value}
        datatype, value = "wikibase-item", {"value": item, "type": "wikibase-entityid"}
    digest = hashlib.sha1(f"{qid}{prop}{statement.value}".encode(), usedforsecurity=False).hexdigest()
    snak = {"snaktype": "value", "property": prop, "hash": digest, "datavalue": value, "datatype": datatype}
    known = {"mainsnak": snak, "type": "statement", "id": f"{qid}${digest[:8]}-{digest[8:12]}"}
    return known | {"rank": statement.rank}


def _time(date: str) -> dict[str, Any]:
    parts = [*date.split("-"), "00", "00"][:3]
    return {
        "time": f"+{'-'.join(parts)}T00:00:00Z",
        "timezone": 0,
        "before": 0,
        "after": 0,
        "precision": 9 + date.count("-"),
        "calendarmodel": f"{ENTITY}Q1985727",
    }
