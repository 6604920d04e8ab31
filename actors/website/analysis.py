"""The structured answer that the model must give, and how an answer is judged."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, field_validator

from actors.website.answers import Unusable, read_answer

__all__ = ["SCHEMA_IN_WORDS", "SITE_TYPES", "Analysis", "Lines", "Unusable", "read_analysis"]

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


def _split(value: Any) -> Any:
    """A list written as one text: by lines or semicolons, else by commas."""
    if not isinstance(value, str):
        return value
    text = value.strip().strip("[]")
    parts = re.split(r"[;\n|]" if re.search(r"[;\n|]", text) else ",", text)
    return [part.strip(" \t\r-*•\"'") for part in parts if part.strip(" \t\r-*•\"'")]


Lines = Annotated[list[Line], BeforeValidator(_split)]

SiteType = Literal[
    "company",
    "shop",
    "news",
    "blog",
    "documentation",
    "portfolio",
    "community",
    "government",
    "education",
    "other",
]
SITE_TYPES = get_args(SiteType)
SCHEMA_IN_WORDS = f"""- "summary": what the page is about, one to three sentences
- "site_type": one of {", ".join(SITE_TYPES)}
- "language": the page's language as a code such as "en" or "pt-br"
- "audience": whom the page addresses
- "topics": up to 20 short topics, a list of strings
- "key_points": up to 20 facts that the page states, a list of strings
- "confidence": how sure you are, a number from 0 to 1"""


class Analysis(BaseModel):
    """What is known about a site in the end. Additional fields of a replaced template are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    summary: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]
    site_type: SiteType
    language: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True, max_length=40)]
    audience: Line
    topics: Lines = Field(max_length=20)
    # facts are sentences, in which a comma does not separate
    key_points: list[Line] = Field(max_length=20)
    confidence: float = Field(ge=0, le=1)

    @field_validator("site_type", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value


def read_analysis(answer: str, *, cut: bool = False) -> Analysis:
    """The analysis in ``answer``, in any usual wrapping; raises Unusable. ``cut``: it is known to end too early."""
    return read_answer(answer, Analysis, cut=cut)
