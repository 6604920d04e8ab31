"""What is compared: a record of the user's, read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.match.dates import When, read_date
from actors.match.readings import Reading, in_brackets, plain, readings

# The statements that are compared, and the names their dates go by in a record.
DATES = {
    "P569": ("born", "birth_date", "date_of_birth", "birth_year", "geboren"),
    "P570": ("died", "death_date", "date_of_death", "death_year", "gestorben"),
    "P571": ("founded", "inception", "established", "founding_year"),
    "P577": ("published", "publication_date", "released"),
}
DATE_NAMES = {"P569": "born", "P570": "died", "P571": "founded", "P577": "published"}
# ``year`` is of whatever the thing has: birth, foundation or publication.
BEGINNINGS = ("P569", "P571", "P577")
# People write what they mean; Wikidata numbers it.
TYPES = {
    "human": "Q5",
    "person": "Q5",
    "city": "Q486972",
    "town": "Q486972",
    "village": "Q486972",
    "municipality": "Q486972",
    "company": "Q4830453",
    "business": "Q4830453",
    "university": "Q38723",
    "college": "Q38723",
    "book": "Q571",
    "literary work": "Q7725634",
    "film": "Q11424",
    "museum": "Q33506",
    "river": "Q355304",
    "ship": "Q11446",
}
# Wikidata has more than one class for some of them.
ALSO = {"Q4830453": ("Q783794",), "Q571": ("Q47461344",)}
KINDS = {
    "Q5": "person",
    "Q4830453": "company",
    "Q783794": "company",
    "Q486972": "place",
    "Q515": "place",
    "Q3957": "place",
    "Q38723": "school",
    "Q3918": "school",
    "Q355304": "river",
    "Q4022": "river",
}
_LIFE = re.compile(r"(?<!\d)(\d{3,4})\s*[-–—]\s*(\d{3,4})(?!\d)")
_COUNTRY = re.compile(r"[A-Za-z]{2}")


@dataclass(frozen=True)
class Record:
    """A dataset entry, read: its name and what else is known that helps to tell homonyms apart."""

    name: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    dates: Mapping[str, When] = field(default_factory=dict)
    type: str | None = None
    country: str = ""
    language: str = ""
    readings: tuple[Reading, ...] = ()

    @property
    def kind(self) -> str:
        """person, company, place, school, river; ``other`` for another type, empty if the type is not known."""
        return KINDS.get(self.type, "other") if self.type else ""

    @property
    def classes(self) -> frozenset[str]:
        """The classes that its entity, or a class of its entity, must be one of."""
        return frozenset((self.type, *ALSO.get(self.type, ()))) if self.type else frozenset()

    @property
    def meanings(self) -> tuple[Reading, ...]:
        """What the name may mean, then the other names."""
        return (*(self.readings or readings(self.name, self.kind)), *map(Reading, self.aliases))


def read_record(name: str, data: Mapping[str, Any], default_type: str | None = None) -> Record:
    """A dataset entry as a record; fields that cannot be read are left out, never an error."""
    low = {str(key).strip().lower(): value for key, value in data.items()}
    kind_of = known_type(low.get("type")) or known_type(default_type)
    kind = KINDS.get(kind_of, "other") if kind_of else ""
    words = [str(low[key]) for key in ("description", "occupation", "profession", "place") if low.get(key)]
    means = readings(name, kind)
    return Record(
        name=means[0].name if means else plain(name),
        aliases=tuple(plain(alias) for alias in _listed(low.get("aliases", low.get("alias"))))[:20],
        description=" ".join([*words, in_brackets(name)])[:1000].strip(),
        dates=_dates(low, name),
        type=kind_of,
        country=_country(low.get("country")),
        language=_language(low.get("language")),
        readings=means,
    )


def known_type(said: object) -> str | None:
    """``Q5`` or ``human`` as Wikidata's number; None for what it has no number for."""
    text = str(said or "").strip()
    if text[:1] in "Qq" and text[1:].isascii() and text[1:].isdigit():
        return "Q" + text[1:]
    return TYPES.get(text.lower())


def _dates(low: Mapping[str, Any], name: str) -> dict[str, When]:
    """What the columns say, else what the name says in brackets: ``(1919–1994)``."""
    found = {prop: when for prop, names in DATES.items() for key in names if (when := read_date(low.get(key)))}
    if life := _LIFE.search(in_brackets(name)):
        found = {"P569": When(int(life[1])), "P570": When(int(life[2])), **found}
    year = read_date(low.get("year"))
    return {**{prop: year for prop in BEGINNINGS if year}, **found}


def _country(said: object) -> str:
    text = said.strip()[:100] if isinstance(said, str) else ""
    return text.upper() if _COUNTRY.fullmatch(text) else text


def _language(said: object) -> str:
    text = said.strip().lower() if isinstance(said, str) else ""
    return text if re.fullmatch(r"[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}", text) else ""


def _listed(value: object) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.replace("|", ";").split(";") if part.strip()]
    return [part for part in value if isinstance(part, str) and part.strip()] if isinstance(value, list) else []
