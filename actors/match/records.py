"""What is compared: a record of the user's and a candidate of Wikidata's, both as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.match.dates import When, from_wikidata, read_date
from actors.match.normalise import LONGEST_NAME, in_brackets, plain_name

# The statements that are compared, and the names their dates go by in a record.
DATES = {
    "P569": ("born", "birth_date", "date_of_birth", "birth_year", "geboren"),
    "P570": ("died", "death_date", "date_of_death", "death_year", "gestorben"),
    "P571": ("founded", "inception", "established", "founding_year"),
    "P577": ("published", "publication_date", "released"),
}
DATE_NAMES = {"P569": "born", "P570": "died", "P571": "founded", "P577": "published"}
TYPE = "P31"
# People write what they mean; Wikidata numbers it.
TYPES = {
    "human": "Q5",
    "person": "Q5",
    "city": "Q515",
    "town": "Q3957",
    "company": "Q4830453",
    "business": "Q4830453",
    "university": "Q3918",
    "book": "Q571",
    "literary work": "Q7725634",
    "film": "Q11424",
    "museum": "Q33506",
    "river": "Q4022",
    "ship": "Q11446",
}
MOST_ALIASES = 100


@dataclass(frozen=True)
class Record:
    """A dataset entry, read: its name and what else is known that helps to tell homonyms apart."""

    name: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    dates: Mapping[str, When] = field(default_factory=dict)
    type: str | None = None


@dataclass(frozen=True)
class Term:
    """A label or alias and its language."""

    text: str
    language: str
    kind: str = "label"


@dataclass(frozen=True)
class Candidate:
    """An entity, cut down to what is compared."""

    qid: str
    terms: tuple[Term, ...] = ()
    description: str = ""
    dates: Mapping[str, tuple[When, ...]] = field(default_factory=dict)
    types: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The name to show."""
        return self.terms[0].text if self.terms else self.qid


def read_record(name: str, data: Mapping[str, Any], default_type: str | None = None) -> Record:
    """A dataset entry as a record; fields that cannot be read are left out, never an error."""
    low = {str(key).strip().lower(): value for key, value in data.items()}
    dates = {prop: when for prop, names in DATES.items() for key in names if (when := read_date(low.get(key)))}
    words = [str(low[key]) for key in ("description", "occupation", "profession", "place") if low.get(key)]
    return Record(
        name=plain_name(name),
        aliases=tuple(plain_name(alias) for alias in _listed(low.get("aliases", low.get("alias"))))[:20],
        description=" ".join([*words, in_brackets(name)])[:1000].strip(),
        dates=dates,
        type=known_type(low.get("type")) or known_type(default_type),
    )


def known_type(said: object) -> str | None:
    """``Q5`` or ``human`` as Wikidata's number; None for what it has no number for."""
    text = str(said or "").strip()
    if text[:1] in "Qq" and text[1:].isascii() and text[1:].isdigit():
        return "Q" + text[1:]
    return TYPES.get(text.lower())


def read_candidate(qid: str, entity: Mapping[str, Any], languages: tuple[str, ...]) -> Candidate | None:
    """An entity of ``wbgetentities``; None if it is missing there. Malformed parts are left out."""
    if "missing" in entity:
        return None
    labels, aliases = _mapping(entity.get("labels")), _mapping(entity.get("aliases"))
    terms = [Term(_text(labels.get(code)), code) for code in languages]
    terms += [Term(_text(a), code, "alias") for code in languages for a in _list(aliases.get(code))]
    descriptions = _mapping(entity.get("descriptions"))
    claims = _mapping(entity.get("claims"))
    return Candidate(
        qid=qid,
        terms=tuple(term for term in terms if term.text)[:MOST_ALIASES],
        description=next((found for code in languages if (found := _text(descriptions.get(code)))), ""),
        dates={prop: when for prop in DATES if (when := tuple(_dates(claims.get(prop))))},
        types=frozenset(_types(claims.get(TYPE))),
    )


def _dates(statements: object) -> list[When]:
    return [when for value in _values(statements) if (when := from_wikidata(value))]


def _types(statements: object) -> list[str]:
    return [
        value["id"] for value in _values(statements) if isinstance(value, dict) and isinstance(value.get("id"), str)
    ]


def _values(statements: object) -> list[Any]:
    found = []
    for statement in _list(statements)[:50]:
        if isinstance(statement, dict) and statement.get("rank") != "deprecated":
            snak = _mapping(statement.get("mainsnak"))
            found.append(_mapping(snak.get("datavalue")).get("value"))
    return found


def _text(term: object) -> str:
    value = term.get("value") if isinstance(term, dict) else None
    if not isinstance(value, str):
        return ""
    # PostgreSQL takes neither NUL nor half a surrogate pair.
    return value[:LONGEST_NAME].replace("\x00", "").encode("utf-8", "replace").decode()


def _listed(value: object) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.replace("|", ";").split(";") if part.strip()]
    return [part for part in _list(value) if isinstance(part, str) and part.strip()]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
