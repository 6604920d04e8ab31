"""docs/walk.md names files and functions that exist, each file once, in order."""

from __future__ import annotations

import re

from tests.place import ROOT

WALK = (ROOT / "docs/walk.md").read_text(encoding="utf-8")
STOP = re.compile(r"^(\d+)\. \[`([\w/.]+)`\]\(\.\./([\w/.]+)\) (.+?) — ", re.MULTILINE)
STOPS = STOP.findall(WALK)


def test_the_stops_are_numbered_in_order_and_every_item_is_one() -> None:
    """A line that the pattern does not know would not be checked."""
    items = re.findall(r"^\d+\. ", WALK, re.MULTILINE)
    assert [int(number) for number, *_ in STOPS] == list(range(1, len(items) + 1))


def test_each_file_exists_and_is_passed_once() -> None:
    """The link goes where its text says."""
    paths = [path for _, path, _, _ in STOPS]
    assert paths == [target for _, _, target, _ in STOPS]
    assert len(set(paths)) == len(paths)
    assert not [path for path in paths if not (ROOT / path).is_file()]


def test_each_function_that_is_named_is_defined_in_its_file() -> None:
    """Python's ``def`` and ``class``, PostgreSQL's ``FUNCTION``."""
    for _, path, _, names in STOPS:
        text = (ROOT / path).read_text(encoding="utf-8")
        defined = set(re.findall(r"(?:\bdef|\bclass|\bFUNCTION) (\w+)", text))
        named = set(re.findall(r"`(\w+)`", names))
        assert named and named <= defined, f"{path}: {named - defined}"
