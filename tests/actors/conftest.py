"""Workers with the application's workflows, and a database whose changes are rolled back after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine

from pipeline import settings
from pipeline.dev.services import Servers
from pipeline.store.engine import engine as open_engine
from tests.databases import Databases
from tests.place import Place


@pytest.fixture
def place(place: Place, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Place:
    """Commands and the API know the whole application; workers those of its workflows that the folder is about."""
    place.workflows = "actors.workflows"
    place.of_workers = {"PIPELINE_WORKFLOWS": f"actors.{request.path.parent.name}.workflow"}
    monkeypatch.setenv("PIPELINE_WORKFLOWS", place.workflows)
    settings.get.cache_clear()
    return place


@pytest.fixture(scope="session")
def shared_database(servers: Servers, databases: Databases) -> Iterator[Engine]:
    name = databases.new("actors")
    engine = open_engine(servers.postgres.url(name).replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()
    databases.give_back(name)


@pytest.fixture
def connection(shared_database: Engine) -> Iterator[Connection]:
    with shared_database.connect() as opened:
        yield opened
        opened.rollback()
