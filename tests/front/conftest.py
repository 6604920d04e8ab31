"""The typed workflow of ``shop.py``, declared and registered for one test alone."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from pipeline.declare import registry
from pipeline.store import database
from pipeline.store.register import register
from tests.place import Place

SHOP = "tests.front.shop"


@pytest.fixture
def shop(place: Place, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """This process has it declared, and PostgreSQL knows it. A worker loads it with PIPELINE_WORKFLOWS=tests.front.shop."""
    monkeypatch.setattr(registry, "_workflows", dict(registry.workflows()))
    monkeypatch.delitem(sys.modules, SHOP, raising=False)
    module = importlib.import_module(SHOP)
    with database.engine().begin() as connection:
        register(connection, [registry.workflows()["shop-orders"]], 300.0)
    return module
