"""A sandbox for all tests here, and a database whose changes are rolled back after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine

from actors.match.config import MatchSettings, worker_settings
from pipeline.dev.services import Servers
from pipeline.store.engine import engine as open_engine
from sandbox import Sandbox, running_sandbox
from tests.databases import Databases


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[Sandbox]:
    with running_sandbox() as running:
        yield running


@pytest.fixture
def sandbox(shared_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    shared_sandbox.reset()
    for name in ("URL", "TOKEN", "RATE", "BURST"):
        monkeypatch.delenv(f"WIKIDATA_{name}", raising=False)
    monkeypatch.setenv("PIPELINE_SANDBOX_URL", shared_sandbox.url)
    worker_settings.cache_clear()
    return shared_sandbox


@pytest.fixture
def settings(sandbox: Sandbox) -> MatchSettings:
    return MatchSettings()


@pytest.fixture(scope="session")
def match_database(servers: Servers, databases: Databases) -> Iterator[Engine]:
    name = databases.new("match")
    engine = open_engine(servers.postgres.url(name).replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()
    databases.give_back(name)


@pytest.fixture
def connection(match_database: Engine) -> Iterator[Connection]:
    with match_database.connect() as opened:
        yield opened
        opened.rollback()
