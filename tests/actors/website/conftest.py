"""Settings that point at the sandbox."""

from __future__ import annotations

import pytest

from actors.website import robots
from actors.website.config import WebsiteSettings, worker_settings
from sandbox import Sandbox


@pytest.fixture
def sandbox(sandbox: Sandbox) -> Sandbox:
    robots.forget()
    return sandbox


@pytest.fixture
def settings(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> WebsiteSettings:
    for name in ("MODEL_URL", "MODEL_NAME", "MODEL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIPELINE_SANDBOX_URL", sandbox.url)
    worker_settings.cache_clear()
    return WebsiteSettings()
