"""Runs in memory, with a table that the shop's phases write to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from sqlalchemy import Engine

from pipeline import Workflow
from pipeline.declare import registry
from pipeline.testing import MemoryRun, in_memory
from pipeline.testing.memory.sqlite import sqlite
from pipeline.testing.servers.workers import Workers
from tests.forked import fork_worker
from tests.forking import ROOT
from tests.testing.shop import gateway

# The workflows that these tests run.
OURS = ("tests.testing.", "tests.wait_workflows")


@pytest.fixture(autouse=True)
def only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of a run loads what its process has declared: not what other tests of this process have."""
    ours = {name: one for name, one in registry.workflows().items() if one.module.startswith(OURS)}
    monkeypatch.setattr(registry, "_workflows", ours)


@pytest.fixture(autouse=True)
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of these runs are started with less work; those of test_plugin.py as users start them."""

    def start(self: Workers, environment: Mapping[str, str], **options: Any) -> Any:
        return fork_worker(self, self._folder, {**environment, "PYTHONPATH": str(ROOT)}, **options)

    monkeypatch.setattr(Workers, "start", start)


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
