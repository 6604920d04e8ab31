"""docs/reference says what the code says."""

from __future__ import annotations

import runpy

import pytest

from tests.place import ROOT

PAGES: dict[str, str] = runpy.run_path(str(ROOT / "docs/generate.py"))["pages"]()


@pytest.mark.parametrize("page", sorted(PAGES))
def test_the_committed_page_is_what_the_generator_makes(page: str) -> None:
    """A setting, command, route or function that changed without its page fails here."""
    committed = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
    assert committed == PAGES[page], f"docs/reference/{page} is out of date: run python docs/generate.py"


def test_no_page_is_left_over() -> None:
    """A page that nothing writes would rot."""
    by_hand = {"errors.md"}  # test_errors.py compares it with the code
    assert {path.name for path in (ROOT / "docs/reference").iterdir()} - by_hand == set(PAGES)
