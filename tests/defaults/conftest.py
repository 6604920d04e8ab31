"""Real workers with the settings that users have: DATABASE_URL, RABBITMQ_URL, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.services import Servers
from tests.databases import Databases
from tests.place import Place


@pytest.fixture
def users(servers: Servers, databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """As ``place``, with the defaults and without the management API's address."""
    from pipeline import settings

    name = databases.new("users")
    servers.rabbitmq.create_vhost(name)
    here = Place(servers, name, tmp_path, timings={})
    here.management = False
    for variable, value in here.environment().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("RABBITMQ_MANAGEMENT_URL", raising=False)
    settings.get.cache_clear()
    yield here
    here.close()
    settings.get.cache_clear()
    servers.rabbitmq.delete_vhost(name)
    databases.give_back(name)
