"""From a ranked list to a decision, by the project's thresholds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from actors.match.records import known_type
from actors.match.score import Scored

Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}$")]
Verdict = Literal["matched", "ambiguous", "none"]
# A name like this is the same but for accents, spaces or an alphabet.
SAME_NAME = 0.96
LONGEST_WHY = 600


class ProjectSettings(BaseModel):
    """How a project's records are searched and judged. Scores are between 0 and 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    languages: tuple[Language, ...] = Field(
        ("en",), min_length=1, max_length=5, description="labels in these are shown; all languages are searched"
    )
    type: str | None = Field(None, max_length=60, description="what all records are: Q5, or a word such as human")
    match_at: float = Field(0.85, ge=0, le=1, description="a candidate with this score can be the match")
    margin: float = Field(0.05, ge=0, le=1, description="and must lead the second by this much")
    consider_at: float = Field(0.60, ge=0, le=1, description="below this, a candidate is not even considered")
    candidates: int = Field(10, ge=1, le=20, description="how many are kept for each record")

    @field_validator("languages")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value))

    @field_validator("type")
    @classmethod
    def _number(cls, value: str | None) -> str | None:
        if value and known_type(value) is None:
            raise ValueError(f"type {value!r} is not known; use Wikidata's number, such as Q5 for a human")
        return known_type(value)

    @model_validator(mode="after")
    def _in_order(self) -> ProjectSettings:
        if self.consider_at > self.match_at:
            raise ValueError(f"consider_at ({self.consider_at}) is above match_at ({self.match_at})")
        return self


@dataclass(frozen=True)
class Decision:
    """What became of a record. ``qid`` only for a match; ``score`` is the best candidate's."""

    verdict: Verdict
    qid: str | None
    score: float | None
    why: str

    def shown(self) -> dict[str, Any]:
        """As the job's result shows it."""
        return {"decision": self.verdict, "qid": self.qid, "score": self.score, "why": self.why}


def decide(ranked: Sequence[Scored], settings: ProjectSettings, unseen: str = "") -> Decision:
    """Matched when one candidate is good and clearly ahead; ambiguous when some deserve a look; none otherwise.

    ``unseen`` says which others were not looked at: then a name alone does not make a match.
    """
    if not ranked:
        return Decision("none", None, None, f"nothing was found{_but(unseen)}")
    best, qid = ranked[0], ranked[0].candidate.qid
    told = f"{qid} scores {best.score:.2f}: {_told(best)}"
    if best.score < settings.consider_at:
        return Decision("none", None, best.score, f"too little agrees; the best, {told}")
    if best.score < settings.match_at:
        return Decision("ambiguous", None, best.score, f"not certain enough; {told}")
    lead = best.score - ranked[1].score if len(ranked) > 1 else 1.0
    if round(lead, 4) < settings.margin:
        why = f"{qid} and {ranked[1].candidate.qid} are only {lead:.2f} apart; {told}"
        return Decision("ambiguous", None, best.score, why)
    if unseen and not best.telling:
        return Decision("ambiguous", None, best.score, f"{unseen}, and only the name speaks for it; {told}")
    return Decision("matched", qid, best.score, told)


def is_settled(ranked: Sequence[Scored], decision: Decision, settings: ProjectSettings) -> bool:
    """Whether further searches can change nothing: a match, or namesakes between which the record does not decide."""
    if decision.verdict == "matched":
        return True
    best = ranked[0] if ranked else None
    if best is None or best.score < settings.match_at or best.conflicts or best.name < SAME_NAME:
        return False
    return len(ranked) > 1 and ranked[1].name >= SAME_NAME and best.score - ranked[1].score < settings.margin


def _told(best: Scored) -> str:
    return "; ".join(f"{reason.what} {reason.points:+.2f} ({reason.why})" for reason in best.reasons)[:LONGEST_WHY]


def _but(unseen: str) -> str:
    return f", but {unseen}" if unseen else ""
