"""docs/howto/async.md: its files, its tests, and what an application does with them; all in memory."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from pipeline.declare import registry
from pipeline.testing import in_memory
from tests.docs.blocks import blocks
from tests.place import ROOT

PAGE = ROOT / "docs/howto/async.md"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The page's modules, imported; what they declare is known to this test alone."""
    monkeypatch.setattr(registry, "_workflows", {})
    named = {found[1]: one.text for one in blocks(PAGE) if (found := re.match(r"# ([\w/]+)\.py\n", one.text))}
    modules = {}
    for name, text in {"shop": "", **named}.items():
        dotted = name.replace("/", ".")
        modules[dotted] = ModuleType(dotted)
        monkeypatch.setitem(sys.modules, dotted, modules[dotted])
        exec(compile(text, name, "exec"), modules[dotted].__dict__)
    return {name: module.__dict__ for name, module in modules.items()}


def test_an_application_submits_waits_and_watches_on_its_event_loop(files: dict[str, Any]) -> None:
    orders = files["shop.orders"]

    async def application() -> tuple[float, float, list[str]]:
        async with AsyncSession() as session:
            job = await orders["order"](session, ["ab", "abcd"])
            seen = [state async for state in orders["states"](job)]
            return await job.result(timeout=5), await orders["lowest"](session, [["abc"], ["a"]]), seen

    with in_memory():
        mean, lowest, seen = asyncio.run(application())
    assert (mean, lowest) == (3.0, 1.0)
    assert seen[-1] == "average: succeeded"


def test_its_tests_pass(files: dict[str, Any]) -> None:
    tests = files["test_prices"]
    tests["test_a_phase_alone"]()
    with in_memory() as run:
        tests["test_a_kill_asks_no_shop_twice"](run)
