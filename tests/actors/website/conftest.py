"""A sandbox for all tests here, and settings that point at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from actors.website import robots
from actors.website.config import WebsiteSettings
from sandbox import Sandbox, running_sandbox


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[Sandbox]:
    with running_sandbox() as running:
        yield running


@pytest.fixture
def sandbox(shared_sandbox: Sandbox) -> Sandbox:
    shared_sandbox.reset()
    robots.forget()
    return shared_sandbox


@pytest.fixture
def settings(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> WebsiteSettings:
    for name in ("MODEL_URL", "MODEL_NAME", "MODEL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIPELINE_SANDBOX_URL", sandbox.url)
    monkeypatch.setenv("PIPELINE_WEBSITE_READ_SECONDS", "1")
    monkeypatch.setenv("PIPELINE_WEBSITE_TOTAL_SECONDS", "5")
    return WebsiteSettings()
