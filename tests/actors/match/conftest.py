"""Settings that point at the sandbox."""

from __future__ import annotations

import pytest

from actors.match.config import MatchSettings, worker_settings
from actors.match.surroundings import known_of
from sandbox import Sandbox


@pytest.fixture
def sandbox(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    for name in ("URL", "TOKEN", "RATE", "BURST"):
        monkeypatch.delenv(f"WIKIDATA_{name}", raising=False)
    monkeypatch.setenv("PIPELINE_SANDBOX_URL", sandbox.url)
    worker_settings.cache_clear()
    known_of(MatchSettings().api).items.clear()
    return sandbox


@pytest.fixture
def settings(sandbox: Sandbox) -> MatchSettings:
    return MatchSettings()
