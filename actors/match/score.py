"""How well a candidate fits a record, in points that add up, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rapidfuzz import fuzz

from actors.match.dates import Agreement, agree
from actors.match.normalise import fold, numbers, sound, words
from actors.match.records import DATE_NAMES, Candidate, Record, Term

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
TYPE_AGREES, TYPE_CONFLICTS = 0.03, -0.15
WORD_POINTS, MOST_WORD_POINTS = 0.02, 0.05
SOUND_WORTH, INITIALS_WORTH, ALIAS_WORTH, OTHER_NUMBER_WORTH = 0.97, 0.88, 0.99, 0.60


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

    def shown(self) -> dict[str, Any]:
        """As it is stored and shown."""
        return {
            "qid": self.candidate.qid,
            "label": self.candidate.label,
            "description": self.candidate.description[:300],
            "score": self.score,
            "reasons": [{"what": r.what, "points": r.points, "why": r.why} for r in self.reasons],
        }


def rank(record: Record, candidates: Iterable[Candidate]) -> list[Scored]:
    """All candidates, best first; equal scores in the order of their numbers."""
    scored = [score(record, candidate) for candidate in candidates]
    return sorted(scored, key=lambda s: (-s.score, len(s.candidate.qid), s.candidate.qid))


def score(record: Record, candidate: Candidate) -> Scored:
    """Name, dates, type and description together."""
    reasons = [_name(record, candidate), *_dates(record, candidate), *_type(record, candidate)]
    reasons += _description(record, candidate)
    total = sum(reason.points for reason in reasons)
    return Scored(candidate, round(min(max(total, 0.0), 1.0), 4), tuple(reasons))


def similarity(one: str, other: str) -> float:
    """How alike two names are, 0 to 1: as written, as they sound, and with initials for given names."""
    folded = fold(one), fold(other)
    if not all(folded):
        return 0.0
    alike = max(
        _ratio(*folded),
        SOUND_WORTH * _ratio(sound(one), sound(other)),
        INITIALS_WORTH if _initials_fit(*folded) else 0.0,
    )
    return min(alike, OTHER_NUMBER_WORTH) if numbers(one) != numbers(other) else alike


def _ratio(one: str, other: str) -> float:
    return max(fuzz.ratio(one, other), fuzz.token_sort_ratio(one, other)) / 100


def _initials_fit(one: str, other: str) -> bool:
    """``j r tolkien`` and ``john ronald tolkien``: the last word whole, the others equal or one the other's initial."""
    ones, others = one.split(), other.split()
    if len(ones) != len(others) or len(ones) < 2 or ones[-1] != others[-1] or len(ones[-1]) < 3:
        return False
    return all(a == b or (min(len(a), len(b)) == 1 and a[0] == b[0]) for a, b in zip(ones, others, strict=True))


def _name(record: Record, candidate: Candidate) -> Reason:
    names = (record.name, *record.aliases)
    fits = [(_worth(name, term), -place, name, term) for name in names for place, term in enumerate(candidate.terms)]
    if not fits:
        return Reason("name", 0.0, f"{candidate.qid} has no name in the project's languages")
    best, _, name, term = max(fits, key=lambda fit: fit[:2])
    why = f"“{name}” is {best:.0%} like the {term.kind} “{term.text}” ({term.language})"
    return Reason("name", round(NAME_POINTS * best, 4), why)


def _worth(name: str, term: Term) -> float:
    return similarity(name, term.text) * (ALIAS_WORTH if term.kind == "alias" else 1.0)


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


def _type(record: Record, candidate: Candidate) -> list[Reason]:
    if record.type is None or not candidate.types:
        return []
    if record.type in candidate.types:
        return [Reason("type", TYPE_AGREES, f"it is a {record.type}")]
    return [Reason("type", TYPE_CONFLICTS, f"it is a {', '.join(sorted(candidate.types)[:5])}, not a {record.type}")]


def _description(record: Record, candidate: Candidate) -> list[Reason]:
    shared = words(record.description) & words(candidate.description)
    if not shared:
        return []
    points = min(WORD_POINTS * len(shared), MOST_WORD_POINTS)
    return [Reason("description", points, f"both say {', '.join(sorted(shared)[:5])}")]
