"""How good the matching is, on the records that ship with the sandbox."""

from __future__ import annotations

from bench.matching import quality
from sandbox import Sandbox
from sandbox.wikidata_labelled import labelled


def test_precision_and_recall_on_the_labelled_records(sandbox: Sandbox) -> None:
    """What is called a match is one; most of what can be found is found."""
    figures = quality()
    assert figures["records"] >= 200
    assert figures["precision"] >= 0.97, figures["wrong"]
    assert figures["recall"] >= 0.85, figures["found_by_kind"]


def test_the_labelled_records_are_the_same_every_time() -> None:
    """With and without an answer, of many kinds."""
    assert labelled() == labelled()
    assert sum(record.answer is None for record in labelled()) >= 40
    assert len({record.kind for record in labelled()}) >= 12
