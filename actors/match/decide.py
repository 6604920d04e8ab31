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


class ProjectSettings(BaseModel):
    """How a project's records are searched and judged. Scores are between 0 and 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    languages: tuple[Language, ...] = Field(("en",), min_length=1, max_length=5, description="each costs one search")
    type: str | None = Field(None, max_length=60, description="what all records are: Q5, or a word such as human")
    match_at: float = Field(0.85, ge=0, le=1, description="a candidate with this score can be the match")
    margin: float = Field(0.05, ge=0, le=1, description="and must lead the second by this much")
    consider_at: float = Field(0.60, ge=0, le=1, description="below this, a candidate is not even considered")
    candidates: int = Field(10, ge=1, le=20, description="how many are fetched and kept for each record")

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


def decide(ranked: Sequence[Scored], settings: ProjectSettings) -> Decision:
    """Matched when one candidate is good and clearly ahead; ambiguous when some deserve a look; none otherwise."""
    if not ranked:
        return Decision("none", None, None, "nothing was found")
    best = ranked[0]
    if best.score < settings.consider_at:
        return Decision("none", None, best.score, f"the best, {best.candidate.qid}, scores only {best.score:.2f}")
    if best.score < settings.match_at:
        return Decision(
            "ambiguous", None, best.score, f"{best.candidate.qid} scores {best.score:.2f}: not certain enough"
        )
    lead = best.score - ranked[1].score if len(ranked) > 1 else 1.0
    if round(lead, 4) < settings.margin:
        why = f"{best.candidate.qid} and {ranked[1].candidate.qid} are only {lead:.2f} apart"
        return Decision("ambiguous", None, best.score, why)
    return Decision("matched", best.candidate.qid, best.score, f"{best.candidate.qid} scores {best.score:.2f}")
