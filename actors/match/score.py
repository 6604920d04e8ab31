"""How well a candidate fits a record, in points that add up, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from actors.match.candidates import Candidate, Term
from actors.match.dates import Agreement, agree
from actors.match.names import Likeness, likeness
from actors.match.normalise import words
from actors.match.places import any_called
from actors.match.readings import Reading
from actors.match.records import DATE_NAMES, Record
from actors.match.surroundings import Surroundings

# The name carries most; what else agrees can lift a good name over the threshold, what disagrees sinks a perfect one.
NAME_POINTS = 0.90
DATE_POINTS: Mapping[Agreement, float] = {
    "day": 0.10,
    "month": 0.08,
    "year": 0.07,
    "near": 0.01,
    "unsure": 0.0,
    "conflict": -0.25,
}
TYPE_AGREES, TYPE_CONFLICTS = 0.03, -0.40
PLACE_AGREES, PLACE_CONFLICTS = 0.06, -0.30
COUNTRY_AGREES, COUNTRY_CONFLICTS = 0.04, -0.25
WORD_POINTS, MOST_WORD_POINTS = 0.02, 0.05
ALIAS_WORTH = 0.99
TELLING = frozenset({*DATE_NAMES.values(), "country", "place", "description"})


@dataclass(frozen=True)
class Reason:
    """What was compared, the points it brought (or cost), and why in words."""

    what: str
    points: float
    why: str


@dataclass(frozen=True)
class Scored:
    """A candidate with its score between 0 and 1; the reasons' points add up to it, cut off at both ends."""

    candidate: Candidate
    score: float
    reasons: tuple[Reason, ...]
    name: float = 0.0

    @property
    def telling(self) -> bool:
        """Whether something beside name and type agrees, which tells namesakes apart."""
        return any(reason.what in TELLING and reason.points > 0.01 for reason in self.reasons)

    @property
    def conflicts(self) -> bool:
        """Whether something disagrees."""
        return any(reason.points < 0 for reason in self.reasons)

    def shown(self) -> dict[str, Any]:
        """As it is stored and shown."""
        merged = {"merged_from": self.candidate.asked_as} if self.candidate.asked_as else {}
        return {
            "qid": self.candidate.qid,
            **merged,
            "label": self.candidate.label,
            "description": self.candidate.description[:300],
            "score": self.score,
            "reasons": [{"what": r.what, "points": r.points, "why": r.why} for r in self.reasons],
        }


def rank(record: Record, candidates: Iterable[Candidate], around: Surroundings | None = None) -> list[Scored]:
    """All candidates, best first; equal scores in the order of their numbers. Nobody is in it twice."""
    around = around or Surroundings()
    single = {candidate.qid: candidate for candidate in candidates if not around.is_nobody(candidate.types)}
    scored = [score(record, candidate, around) for candidate in single.values()]
    return sorted(scored, key=lambda s: (-s.score, len(s.candidate.qid), s.candidate.qid))


def score(record: Record, candidate: Candidate, around: Surroundings | None = None) -> Scored:
    """Name and place, dates, type, country and description together."""
    around = around or Surroundings()
    alike, reasons = _named(record, candidate, around)
    reasons += [*_dates(record, candidate), *_type(record, candidate, around)]
    reasons += [*_country(record, candidate, around), *_description(record, candidate)]
    total = sum(reason.points for reason in reasons)
    return Scored(candidate, round(min(max(total, 0.0), 1.0), 4), tuple(reasons), alike)


def name_worth(record: Record, text: str) -> float:
    """How well a label alone fits what the record's name may mean."""
    return max((likeness(reading.name, text, record.kind).worth for reading in record.meanings), default=0.0)


def _named(record: Record, candidate: Candidate, around: Surroundings) -> tuple[float, list[Reason]]:
    """By the meaning of the name that fits best, with the place that belongs to that meaning."""
    best: tuple[float, list[Reason]] | None = None
    for reading in record.meanings:
        alike, reason = _name(reading, candidate, record.kind)
        reasons = [reason, *_within(reading, candidate, around)]
        if best is None or _points(reasons) > _points(best[1]):
            best = alike, reasons
    return best or (0.0, [Reason("name", 0.0, "the record has no name")])


def _points(reasons: Iterable[Reason]) -> float:
    return sum(reason.points for reason in reasons)


def _name(reading: Reading, candidate: Candidate, kind: str) -> tuple[float, Reason]:
    fits = [(_worth(reading.name, term, kind), -place, term) for place, term in enumerate(candidate.terms)]
    if not fits:
        return 0.0, Reason("name", 0.0, f"{candidate.qid} has no name in any language")
    found, _, term = max(fits, key=lambda fit: (fit[0].worth, fit[1]))
    why = f"“{reading.name}” and the {term.kind} “{term.text}” ({term.language}): {found.how}, {found.worth:.0%}"
    return found.worth, Reason("name", round(NAME_POINTS * found.worth, 4), why)


def _worth(name: str, term: Term, kind: str) -> Likeness:
    found = likeness(name, term.text, kind)
    return Likeness(found.worth * ALIAS_WORTH, found.how) if term.kind == "alias" else found


def _within(reading: Reading, candidate: Candidate, around: Surroundings) -> list[Reason]:
    above = around.above(candidate.lies_in | candidate.countries)
    if not reading.within or not above:
        return []
    places = [around.item(qid) for qid in above]
    missing = [said for said in reading.within if not any_called(said, places)]
    where = ", ".join(reading.within)
    if not missing:
        return [Reason("place", PLACE_AGREES, f"it lies in {where}")]
    if not around.complete(above):
        return [Reason("place", 0.0, f"it is not known whether it lies in {where}")]
    return [Reason("place", PLACE_CONFLICTS, f"it does not lie in {', '.join(missing)}")]


def _dates(record: Record, candidate: Candidate) -> list[Reason]:
    reasons = []
    for prop, ours in record.dates.items():
        theirs = candidate.dates.get(prop)
        if theirs:
            # Wikidata may hold several dates from several sources: the one that fits best counts.
            best, verdict = max(((w, agree(ours, w)) for w in theirs), key=lambda found: DATE_POINTS[found[1]])
            said = "conflicts with" if verdict == "conflict" else f"agrees ({verdict}) with"
            why = f"{DATE_NAMES[prop]} {ours} {said} {best}"
            reasons.append(Reason(DATE_NAMES[prop], DATE_POINTS[verdict], why))
    return reasons


def _type(record: Record, candidate: Candidate, around: Surroundings) -> list[Reason]:
    if not record.classes or not candidate.types:
        return []
    if record.classes & candidate.types:
        return [Reason("type", TYPE_AGREES, f"it is a {record.type}")]
    if record.classes & around.above(candidate.types):
        return [Reason("type", TYPE_AGREES, f"it is a {_some(candidate.types)}, which is a kind of {record.type}")]
    if not around.complete(candidate.types):
        return [Reason("type", 0.0, f"it is not known whether a {_some(candidate.types)} is a kind of {record.type}")]
    return [Reason("type", TYPE_CONFLICTS, f"it is a {_some(candidate.types)}, not a {record.type}")]


def _some(types: frozenset[str]) -> str:
    return ", ".join(sorted(types)[:5])


def _country(record: Record, candidate: Candidate, around: Surroundings) -> list[Reason]:
    places = [around.item(qid) for qid in candidate.countries]
    if not record.country or not places:
        return []
    if any_called(record.country, places):
        return [Reason("country", COUNTRY_AGREES, f"its country is {record.country}")]
    # States that are gone have no code: a person of the Russian Empire may well be called Russian.
    if not all(place.code for place in places):
        return [Reason("country", 0.0, f"it is not known whether its country is {record.country}")]
    return [Reason("country", COUNTRY_CONFLICTS, f"its country is not {record.country}")]


def _description(record: Record, candidate: Candidate) -> list[Reason]:
    shared = words(record.description) & words(candidate.description)
    if not shared:
        return []
    points = min(WORD_POINTS * len(shared), MOST_WORD_POINTS)
    return [Reason("description", points, f"both say {', '.join(sorted(shared)[:5])}")]
