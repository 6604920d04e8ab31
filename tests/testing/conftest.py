"""Runs in memory, with a table that the shop's phases write to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from pipeline import Workflow
from pipeline.declare import registry
from pipeline.testing import MemoryRun, in_memory
from pipeline.testing.memory.sqlite import sqlite
from tests.testing.shop import gateway


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = sqlite()
    with made.begin() as db:
        db.exec_driver_sql("CREATE TABLE shipped (job TEXT PRIMARY KEY)")
    yield made
    made.dispose()


@pytest.fixture
def run(engine: Engine) -> Iterator[MemoryRun]:
    gateway.down, gateway.charged = 0, []
    with in_memory(engine) as made:
        yield made


@pytest.fixture
def workflow(monkeypatch: pytest.MonkeyPatch) -> Workflow[dict[str, Any], Any]:
    """A workflow of one test."""
    monkeypatch.setattr(registry, "_workflows", dict(registry._workflows))
    return Workflow("kit-own")
