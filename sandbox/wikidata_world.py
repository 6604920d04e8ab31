"""The pretended Wikidata's entities: people, their homonyms, and things. The same in every process and on every day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sandbox import wikidata_people as names

HUMAN, TOWN, COMPANY, SHIP, BOOK, UNIVERSITY, RIVER = "Q5", "Q3957", "Q4830453", "Q11446", "Q7725634", "Q3918", "Q4022"
FIRST = 900_001
TOWNS = (
    "Harburg an der Linne",
    "Niederweißbach",
    "Ashcombe",
    "Thornbury Magna",
    "Châtelroux",
    "Peñalver de la Sierra",
    "Østerlund",
    "Blackwood",
    "Wojciechowice",
    "Cernisov Brod",
)
FIRMS = (
    "Ashcombe & Sons",
    "Müllner Werke",
    "Fairweather Instruments",
    "Kærsgaard Møbler",
    "Blackwood Press",
    "Zúñiga Hermanos",
    "Whitlocke and Pemberley",
    "Okabe Denki",
)
NAMED_AFTER = ("William Ashcombe", "Margaret Thornbury", "Edmund Fairweather", "Harriet Pemberley")


@dataclass(frozen=True)
class Known:
    """One entity. Dates are written as precisely as they are known: 1871, 1871-04 or 1871-04-09."""

    qid: str
    labels: dict[str, str]
    description: str
    kind: str = HUMAN
    aliases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    born: str = ""
    died: str = ""
    founded: str = ""

    @property
    def name(self) -> str:
        """What it is called in English."""
        return self.labels["en"]


@lru_cache(maxsize=1)
def world() -> tuple[Known, ...]:
    """Every entity, numbered from Q900001."""
    found = [*_people(), *_homonyms(list(_people())), *_things()]
    return tuple(replace(known, qid=f"Q{FIRST + place}") for place, known in enumerate(found))


def _people() -> Iterator[Known]:
    for place, (labels, aliases, nation) in enumerate(_names()):
        yield _person(place, labels, aliases, nation)


def _names() -> Iterator[tuple[dict[str, str], dict[str, tuple[str, ...]], str]]:
    for place, given in enumerate(names.SLAVIC_GIVEN):
        for step in range(7):
            family = names.SLAVIC_FAMILY[(place + step) % len(names.SLAVIC_FAMILY)]
            english, russian, german = (f"{g} {f}" for g, f in zip(given, family, strict=True))
            yield {"en": english, "ru": russian, "de": german}, {"ru": (_turned(russian),)}, "ru"
    for given_name, greek_given in names.GREEK_GIVEN:
        for family_name, greek_family in names.GREEK_FAMILY:
            yield {"en": f"{given_name} {family_name}", "el": f"{greek_given} {greek_family}"}, {}, "el"
    for latin, native, language in names.EAST_ASIAN:
        yield {"en": latin, language: native}, {"en": (" ".join(reversed(latin.split())),)}, language
    for nation, (given_names, families) in names.WESTERN.items():
        for place, given_western in enumerate(given_names):
            for step in range(4):
                full = f"{given_western} {families[(place + step) % len(families)]}"
                yield {"en": full, nation: full, "mul": full}, {}, nation


def _person(place: int, labels: dict[str, str], aliases: dict[str, tuple[str, ...]], nation: str) -> Known:
    year = 1780 + place * 37 % 190
    born = f"{year}-{1 + place * 7 % 12:02}-{1 + place * 11 % 28:02}"
    died = f"{year + 41 + place * 13 % 47}" if year < 1930 else ""
    work = names.OCCUPATIONS[place * 5 % len(names.OCCUPATIONS)]
    description = f"{names.NATIONS[nation]} {work} ({year}–{died})" if died else f"{names.NATIONS[nation]} {work}"
    return Known("", labels, description, HUMAN, aliases, born if place % 6 else str(year), died)


def _homonyms(people: list[Known]) -> Iterator[Known]:
    """Every fifth person has a namesake of another time and trade; every fifteenth has two."""
    for place in range(0, len(people), 5):
        for generation in range(2 if place % 15 == 0 else 1):
            person = people[place]
            year = int(person.born[:4]) + 29 + 31 * generation
            work = names.OCCUPATIONS[(place * 5 + 4 + generation) % len(names.OCCUPATIONS)]
            yield replace(person, description=f"{work} (born {year})", born=str(year), died="")


def _things() -> Iterator[Known]:
    for place, town in enumerate(TOWNS):
        size = f"town with {3 + place * 7} thousand inhabitants"
        yield Known("", {"en": town, "de": town}, size, TOWN, founded=str(1190 + place * 41))
        seat = f"University of {town}"
        yield Known("", {"en": seat}, f"university in {town}", UNIVERSITY, founded=str(1810 + place * 9))
    for place, firm in enumerate(FIRMS):
        also: dict[str, tuple[str, ...]] = {"en": (f"{firm} Ltd", f"{firm} Company")}
        yield Known("", {"en": firm, "mul": firm}, "company", COMPANY, also, founded=str(1850 + place * 13))
    for place, person in enumerate(NAMED_AFTER):
        launched = str(1870 + place * 11)
        yield Known("", {"en": person}, f"ship launched in {launched}", SHIP, founded=launched)
        yield Known("", {"en": f"The Life of {person}"}, f"biography of {person}", BOOK, {"en": (person,)})
    for number in range(1, 13):
        yield Known("", {"en": f"Meridian {number}"}, "research ship", SHIP, founded=str(1960 + number))
    for numeral in ("I", "II", "III", "IV", "V"):
        yield Known("", {"en": f"Casimir {numeral} of Thornbury"}, "ruler of Thornbury")
    for river in ("Linne", "Ashwater", "Kleine Weiße", "Río Peñal"):
        yield Known("", {"en": river, "mul": river}, "river", RIVER)


def _turned(name: str) -> str:
    given, _, family = name.rpartition(" ")
    return f"{family}, {given}"
