"""Entities as the API sends them, cut down to what is compared. Malformed parts are left out, never an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from actors.match.dates import When, from_wikidata
from actors.match.normalise import LONGEST_NAME
from actors.match.records import DATES

TYPE, SUBCLASS, LIES_IN, ISO_CODE = "P31", "P279", "P131", "P297"
COUNTRIES = ("P17", "P27", "P495")
# Pages that Wikimedia keeps for itself: disambiguation, categories, lists, templates, and the classes above them.
NOBODY = frozenset({"Q4167410", "Q22808320", "Q4167836", "Q13406463", "Q11266439", "Q17442446", "Q17379835"})
MOST_TERMS = 400


@dataclass(frozen=True)
class Term:
    """A label or alias and its language."""

    text: str
    language: str
    kind: str = "label"


@dataclass(frozen=True)
class Candidate:
    """An entity. ``asked_as`` is its number in the search's answer, if it was merged into another since."""

    qid: str
    terms: tuple[Term, ...] = ()
    description: str = ""
    dates: Mapping[str, tuple[When, ...]] = field(default_factory=dict)
    types: frozenset[str] = frozenset()
    lies_in: frozenset[str] = frozenset()
    countries: frozenset[str] = frozenset()
    asked_as: str = ""

    @property
    def label(self) -> str:
        """The name to show."""
        return self.terms[0].text if self.terms else self.qid


@dataclass(frozen=True)
class Item:
    """A class or a place: what it is called, what it belongs to, and a country's code."""

    names: frozenset[str] = frozenset()
    above: frozenset[str] = frozenset()
    code: str = ""


def read_candidate(qid: str, entity: Mapping[str, Any], languages: Sequence[str]) -> Candidate | None:
    """An entity of ``wbgetentities``; None if it is missing there. Labels in ``languages`` come first."""
    if "missing" in entity:
        return None
    descriptions = _mapping(entity.get("descriptions"))
    claims = _mapping(entity.get("claims"))
    now = entity.get("id")
    return Candidate(
        qid=now if is_number(now) else qid,
        terms=tuple(_terms(entity, languages))[:MOST_TERMS],
        description=next((found for code in languages if (found := _text(descriptions.get(code)))), ""),
        dates={prop: when for prop in DATES if (when := tuple(_dates(claims.get(prop))))},
        types=_items(claims, TYPE),
        lies_in=_items(claims, LIES_IN),
        countries=frozenset().union(*(_items(claims, prop) for prop in COUNTRIES)),
        asked_as=qid if is_number(now) and now != qid else "",
    )


def read_item(entity: Mapping[str, Any], languages: Sequence[str]) -> Item:
    """A class or place of ``wbgetentities``; empty if it is missing there."""
    claims = _mapping(entity.get("claims"))
    codes = [value for value in _values(claims.get(ISO_CODE)) if isinstance(value, str)]
    return Item(
        names=frozenset(term.text for term in _terms(entity, languages)),
        above=_items(claims, SUBCLASS) | _items(claims, LIES_IN),
        code=codes[0].upper()[:2] if codes else "",
    )


def is_number(value: object) -> TypeGuard[str]:
    """Whether it is an item's number, such as Q42."""
    return (
        isinstance(value, str) and value[:1] == "Q" and value[1:].isascii() and value[1:].isdigit() and len(value) < 16
    )


def _terms(entity: Mapping[str, Any], languages: Sequence[str]) -> Iterator[Term]:
    """A text that is the same in many languages once."""
    labels, aliases = _mapping(entity.get("labels")), _mapping(entity.get("aliases"))
    codes = dict.fromkeys((*languages, *labels, *aliases))
    terms = [Term(_text(labels.get(code)), str(code)) for code in codes]
    terms += [Term(_text(alias), str(code), "alias") for code in codes for alias in _list(aliases.get(code))]
    first = {term.text: term for term in reversed(terms) if term.text}
    return reversed(first.values())


def _dates(statements: object) -> list[When]:
    return [when for value in _values(statements) if (when := from_wikidata(value))]


def _items(claims: Mapping[str, Any], prop: str) -> frozenset[str]:
    found = (value.get("id") for value in _values(claims.get(prop)) if isinstance(value, dict))
    return frozenset(qid for qid in found if is_number(qid))


def _values(statements: object) -> list[Any]:
    """Of the statements that hold: the preferred ones if there are any, and never one that was found to be wrong."""
    known = [statement for statement in _list(statements)[:50] if isinstance(statement, dict)]
    preferred = [statement for statement in known if statement.get("rank") == "preferred"]
    holding = preferred or [statement for statement in known if statement.get("rank") != "deprecated"]
    return [_mapping(_mapping(s.get("mainsnak")).get("datavalue")).get("value") for s in holding]


def _text(term: object) -> str:
    value = term.get("value") if isinstance(term, dict) else None
    if not isinstance(value, str):
        return ""
    # PostgreSQL takes neither NUL nor half a surrogate pair.
    return value[:LONGEST_NAME].replace("\x00", "").encode("utf-8", "replace").decode()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
