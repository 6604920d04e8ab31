"""Every Python example of the documentation, as files that type checkers can read: a package for each page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from tests.docs.blocks import blocks, pages
from tests.docs.test_submit import MODELS
from tests.place import ROOT

IMPORT = re.compile(r"^( *)(from|import) (\w+)((?:\.\w+)*)", re.MULTILINE)
NAMED = re.compile(r"# ([\w/]+)\.py\n")
# Written from the code; tests/docs/test_python_reference.py runs its examples.
GENERATED = "reference_python"
# What the fragments of a page take as given. Of the other pages, all that is in no file of its own is one module.
GIVEN = {
    "howto_new_workflow": """
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx
from pydantic import BaseModel, Field
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from pipeline import Done, Job, Workflow, exponential

audit, orders = Workflow("audit"), Workflow("orders")
session, async_session = Session(), AsyncSession()
PAID, PAYMENTS = text(""), ""
card: Any
async def fetch(url: str) -> str: ...  # type: ignore[empty-body]
def links(page: str) -> list[str]: ...  # type: ignore[empty-body]
def missing(lines: object) -> list[str]: ...  # type: ignore[empty-body]
def send_mail(receipt: object) -> None: ...
""",
    "howto_schedules": """
import pipeline
from pipeline import Job
from sqlalchemy.orm import Session

session, job = Session(), Job()
""",
    "howto_test_your_workflow": "from typing import Any\n\ncharge: Any\n",
}


# Modules that another page, or the application of the reader, has.
ELSEWHERE = {"headlines": "tutorial"}
OWN = {"howto_submit/shop/models": MODELS}


def shown() -> dict[str, str]:
    """The text of each file, by its path without the ending: ``howto_django/shop/jobs``."""
    found = {page: _package(page) for page in pages()}
    files = {f"{name}/{file}": code for page, name in found.items() if name != GENERATED for file, code in _files(page)}
    return {**files, **OWN}


def _package(page: Path) -> str:
    shown = page.relative_to(ROOT / "docs") if page.is_relative_to(ROOT / "docs") else page.relative_to(ROOT)
    return re.sub(r"\W", "_", str(shown.with_suffix("")))


def _files(page: Path) -> Iterator[tuple[str, str]]:
    """Modules of the page import one another as if they stood alone; here they are in its package."""
    package = _package(page)
    ours = [block.text for block in blocks(page) if block.kind == "python" and block.mark in ("", "ours")]
    named = {found[1]: code for code in ours if (found := NAMED.match(code))}
    homes = {**ELSEWHERE, **{name.partition("/")[0]: package for name in named}}
    for name, code in {**named, **_rest(package, [code for code in ours if not NAMED.match(code)])}.items():
        yield name, IMPORT.sub(lambda found: _imported(found, homes), code)


def _imported(found: re.Match[str], homes: dict[str, str]) -> str:
    """The import of a module that is in a package here."""
    space, word, module, more = found.groups()
    if module not in homes:
        return found[0]
    if word == "import" and not more:
        return f"{space}from {homes[module]} import {module}"
    return f"{space}{word} {homes[module]}.{module}{more}"


def _rest(package: str, fragments: list[str]) -> dict[str, str]:
    if package not in GIVEN:
        return {"rest": "\n".join(fragments)} if fragments else {}
    inside = [f"async def fragment_{n}() -> None:\n{indent(code, '    ')}" for n, code in enumerate(fragments)]
    return {"rest": GIVEN[package] + "\n\n".join(inside)}
