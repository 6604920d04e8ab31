"""Reading a CirrusSearch query. What it does not know as syntax is words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from sandbox.wikidata_text import folded

_PART = re.compile(r'-?"[^"]*"?|\S+')
_FUZZY = re.compile(r"(\w+)~([0-2]?)")
_WILDCARD = re.compile(r"\w+(?:\*|\\\?)[\w*\\?]*")
_STATEMENT = re.compile(r"haswbstatement:(\S+)")
KEYWORD = "haswbstatement:"


@dataclass(frozen=True)
class Clause:
    """Something that must, may or must not be there."""

    text: str
    kind: Literal["words", "phrase", "fuzzy", "wildcard"] = "words"
    how: Literal["must", "may", "not"] = "must"
    edits: int = 0

    @property
    def pattern(self) -> re.Pattern[str]:
        """A wildcard as an expression."""
        return re.compile(re.escape(self.text).replace(r"\*", r"\w*").replace(r"\\\?", r"\w"))


@dataclass(frozen=True)
class Query:
    """Clauses, statements of which each group needs one, and the text without keywords."""

    clauses: tuple[Clause, ...]
    statements: tuple[tuple[str, ...], ...]
    text: str


def parse(question: str) -> Query:
    """``OR`` makes the clauses on both its sides optional, as Lucene's classic parser does; there are no brackets."""
    statements = tuple(tuple(found.split("|")) for found in _STATEMENT.findall(question))
    text = " ".join(_STATEMENT.sub(" ", question).split())
    clauses: list[Clause] = []
    either = False
    for part in _PART.findall(text):
        if part in ("OR", "AND"):
            either = part == "OR" and bool(clauses)
            continue
        clause = _clause(part)
        if either and clause.how != "not":
            clauses[-1] = replace(clauses[-1], how="may" if clauses[-1].how == "must" else clauses[-1].how)
            clause = replace(clause, how="may")
        clauses.append(clause)
        either = False
    return Query(tuple(clauses), statements, text)


def _clause(part: str) -> Clause:
    if part[0] in "-!" and len(part) > 1:
        return replace(_clause(part[1:]), how="not")
    if part.startswith('"'):
        return Clause(part.strip('"'), "phrase")
    if found := _FUZZY.fullmatch(part):
        word = folded(found[1])
        return Clause(word, "fuzzy", edits=int(found[2]) if found[2] else _usual_edits(word))
    if _WILDCARD.fullmatch(part):
        return Clause(folded(part), "wildcard")
    return Clause(part)


def _usual_edits(word: str) -> int:
    return 0 if len(word) < 3 else 1 if len(word) < 6 else 2
