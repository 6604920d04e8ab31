"""Links, anchors and commands in the documentation are real."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from tests.docs.blocks import blocks, pages
from tests.place import ROOT

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
PAGES = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@PAGES
def test_every_relative_link_resolves(page: Path) -> None:
    """To a file or folder of the repository, and to a heading that is there."""
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        found = page.parent / path if path else page
        assert found.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in _anchors(found), f"{page.name}: {target} has no such heading"


@PAGES
def test_every_command_in_a_block_is_one_of_ours(page: Path) -> None:
    """``pipeline …`` as the command itself would read it; nothing is run."""
    from pipeline.front.cli.main import whole

    root = typer.main.get_command(whole())
    for block in blocks(page):
        for line in block.text.splitlines() if block.kind in ("sh", "bash", "console", "") else ():
            for words in _commands(line):
                try:
                    _parse(root, words)
                except TyperException as error:
                    pytest.fail(f"{page.name}: pipeline {' '.join(words)}: {error!r}")


def _commands(line: str) -> list[list[str]]:
    """What follows ``pipeline`` on the line, also inside ``$(…)``."""
    found = re.findall(r"(?:^|\$\(|[;&|] ?)pipeline ((?:'[^']*'|[^;&|)#'])*)", line.strip())
    return [shlex.split(words.strip()) for words in found]


def _parse(command: Any, words: list[str], parent: Any = None) -> None:
    context = command.make_context(command.name, list(words), parent)
    rest = [*getattr(context, "_protected_args", ()), *context.args]
    if isinstance(command, TyperGroup) and rest:
        _, child, others = command.resolve_command(context, rest)
        _parse(child, others, context)


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    """Otherwise the test above could not fail."""
    from pipeline.front.cli.main import whole

    [words] = _commands("JOB=$(pipeline dead lst)  # a comment")
    with pytest.raises(TyperException, match="No such command"):
        _parse(typer.main.get_command(whole()), words)
