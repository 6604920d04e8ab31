"""The structured answer that the model must give, and how an answer is judged."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from actors.website.storable import clean, load_json

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]

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
    topics: list[Line] = Field(max_length=20)
    key_points: list[Line] = Field(max_length=20)
    confidence: float = Field(ge=0, le=1)

    @field_validator("site_type", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value


class Unusable(ValueError):  # a judgement on an answer, not a failure of the program
    """The answer does not fit; the message lists the problems in words that the model can act on."""


def read_analysis(answer: str) -> Analysis:
    """The analysis in ``answer``, with or without a code fence around it; raises Unusable."""
    try:
        found = load_json(_unfenced(answer))
    except ValueError as error:
        raise Unusable(f"- it is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise Unusable("- it is not a JSON object")
    try:
        return Analysis.model_validate(found)
    except ValidationError as error:
        raise Unusable("\n".join(_problems(error))) from None


def _problems(error: ValidationError) -> list[str]:
    found = error.errors(include_url=False, include_input=False)[:10]
    return [f'- "{".".join(map(str, problem["loc"]))}": {problem["msg"]}' for problem in found]


def _unfenced(answer: str) -> str:
    text = clean(answer).strip()
    fenced = re.fullmatch(r"```[a-zA-Z]*\s*(.*?)\s*```", text, re.DOTALL)
    return fenced.group(1) if fenced else text
