"""What models send back is read, or refused, as the labelled set says; figures are printed for each half."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, StringConstraints

from actors.website.analysis import Lines
from actors.website.answers import Unusable, read_answer

HERE = Path(__file__).parent / "answers"


class Asked(BaseModel):
    """What the set's prompt asked for."""

    summary: Annotated[str, StringConstraints(min_length=1)]
    topics: Lines
    language: Annotated[str, StringConstraints(min_length=1)]
    sentiment: Literal["positive", "neutral", "negative", "mixed"]


def read(path: Path) -> Any:
    try:
        return read_answer(path.read_bytes().decode("utf-8"), Asked).model_dump()
    except Unusable:
        return "ask again"


@pytest.mark.parametrize("half", ["develop", "measured"])
def test_answers_are_read_or_refused_as_expected(half: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All that can be read for certain is read as expected, nothing else is."""
    rows = json.loads((HERE / half / "answers.json").read_text(encoding="utf-8"))
    differ: list[str] = []
    for row in rows:
        expected = row["expected"] if isinstance(row["expected"], dict) else "ask again"
        found = read(HERE / half / row["file"])
        if found != expected:
            keys = (
                sorted(key for key in expected if found[key] != expected[key])
                if isinstance(found, dict) and isinstance(expected, dict)
                else []
            )
            differ.append(
                f"{row['id']} {row['form']}: {', '.join(keys) or ('read' if isinstance(found, dict) else 'not read')}"
            )
    readable = sum(isinstance(row["expected"], dict) for row in rows)
    with capsys.disabled():
        print(
            f"\nanswers, {half}: {len(rows) - len(differ)} of {len(rows)} right ({readable} readable)",
            *differ,
            sep="\n  ",
        )
    assert not differ
