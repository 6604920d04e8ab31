"""How good the matching is, on the records that ship with the sandbox and the developers' half of the labelled set."""

from __future__ import annotations

from bench.matching import quality
from sandbox import Sandbox
from sandbox.wikidata_labelled import labelled
from tests.measured.records_figures import measure


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


def test_precision_recall_and_calls_on_the_developers_half() -> None:
    """The floors of the measured half, and closer to what is reached."""
    figures = measure("develop")
    print("\n".join(["", *figures.lines()]))
    assert figures.precision >= 0.99, figures.wrong
    assert figures.recall >= 0.97, figures.missed
    assert min(figures.categories.values()) >= 0.9, figures.missed
    assert figures.calls_a_record <= 3.2
