"""Ask the model for a structured analysis: one question, one repair round, all tokens counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.website.analysis import SCHEMA_IN_WORDS, Analysis, Unusable, read_analysis
from actors.website.chat import ModelEndpoint, ask
from actors.website.completions import Reply, Usage
from actors.website.messages import Message
from actors.website.storable import one_line
from actors.website.templates import fill
from pipeline import Transient


@dataclass(frozen=True)
class Analysed:
    """The analysis, and what it took to get it."""

    analysis: Analysis
    model: str
    usage: Usage
    repaired: bool


async def analyse(
    endpoint: ModelEndpoint,
    messages: Sequence[Message],
    headers: Mapping[str, str] | None = None,
    templates: Path | None = None,
) -> Analysed:
    """Ask, check, and ask once more if the answer does not fit; raises Transient if it then still does not."""
    schema = Analysis.model_json_schema()
    first = await ask(endpoint, messages, headers, schema)
    try:
        return Analysed(read_analysis(first.text, cut=first.cut), first.model, first.usage, repaired=False)
    except Unusable as problems:
        repair = _repair(messages, first, problems, templates)
    second = await ask(endpoint, repair, _for_repair(headers), schema)
    spent = first.usage + second.usage
    try:
        found = read_analysis(second.text, cut=second.cut)
    except Unusable as problems:
        said = f"{one_line(str(problems), 300)} ({spent.tokens_in} and {spent.tokens_out} tokens were spent)"
        raise Transient(f"the answer of {second.model} could not be used, nor its correction: {said}") from None
    return Analysed(found, second.model, spent, repaired=True)


def _repair(messages: Sequence[Message], first: Reply, problems: Unusable, templates: Path | None) -> list[Message]:
    request = fill("repair", {"problems": str(problems), "schema": SCHEMA_IN_WORDS}, templates)
    return [
        *messages,
        Message(role="assistant", content=first.text),
        Message(role="user", content=request),
    ]


def _for_repair(headers: Mapping[str, str] | None) -> dict[str, str]:
    # a second question under the first one's key would be answered with the first answer
    return {
        name: f"{value}:repair" if name.lower() == "idempotency-key" else value
        for name, value in (headers or {}).items()
    }
