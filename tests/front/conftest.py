"""The typed workflows of ``shop.py`` and ``returns.py``, declared and registered for one test alone."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from pipeline.declare import registry
from pipeline.store import database
from pipeline.store.register import register
from tests.place import Place


def declared(monkeypatch: pytest.MonkeyPatch, module: str, workflow: str) -> ModuleType:
    """This process has it declared, and PostgreSQL knows it. A worker loads it with PIPELINE_WORKFLOWS=<module>."""
    monkeypatch.setattr(registry, "_workflows", dict(registry.workflows()))
    monkeypatch.delitem(sys.modules, module, raising=False)
    found = importlib.import_module(module)
    with database.engine().begin() as connection:
        register(connection, [registry.workflows()[workflow]], 300.0)
    return found


@pytest.fixture
def shop(place: Place, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Orders."""
    return declared(monkeypatch, "tests.front.shop", "shop-orders")


@pytest.fixture
def returns(place: Place, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Goods that come back."""
    return declared(monkeypatch, "tests.front.returns", "shop-returns")
