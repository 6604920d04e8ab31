"""Fenced blocks of the documentation, as the tests read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.place import ROOT

BLOCK = re.compile(r"^```(\w*)(?: (\w+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """``kind`` is the language; ``mark`` the word after it, which only the tests know."""

    kind: str
    mark: str
    text: str


def pages() -> list[Path]:
    """Everything a newcomer reads."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The page's blocks, in order."""
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]
