"""A place with sources and intakes in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import settings
from pipeline.dev.services import Servers
from pipeline.store import database
from sandbox import Sandbox
from tests.actors.scrape.stall import Bench, Stall
from tests.databases import Databases
from tests.place import Place


def _settings(sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For this process and for the workers that the test starts; the cache is off unless a test wants it."""
    monkeypatch.setenv("PIPELINE_SANDBOX_URL", sandbox.url)
    monkeypatch.setenv("CACHE_ENABLED", "false")
    monkeypatch.setenv("CACHE_FOLDER", str(folder / "cache"))
    monkeypatch.setenv("PIPELINE_BACKOFF_SCALE", "0.005")


@pytest.fixture
def stall(place: Place, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stall:
    """With a broker, for tests that start workers."""
    _settings(sandbox, tmp_path, monkeypatch)
    return Stall(place, sandbox)


@pytest.fixture
def quiet(
    servers: Servers, databases: Databases, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stall]:
    """Without a broker: a database of the test's own is enough where the test itself runs the phases."""
    name = databases.new("scrape")
    here = Place(servers, name, tmp_path)
    for variable, value in here.environment().items():
        monkeypatch.setenv(variable, value)
    _settings(sandbox, tmp_path, monkeypatch)
    settings.get.cache_clear()
    yield Stall(here, sandbox)
    database.engine().dispose()
    here.close()
    settings.get.cache_clear()
    databases.give_back(name)


@pytest.fixture
def bench(quiet: Stall) -> Bench:
    return Bench(quiet)
