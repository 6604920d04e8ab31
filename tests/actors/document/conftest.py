"""Settings that point at the sandbox, and a measure of how well a text was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.document import registry
from actors.document.config import DocumentSettings
from sandbox import Sandbox

SETTINGS = (
    "REGISTRY_URL",
    "REGISTRY_USER",
    "REGISTRY_PASSWORD",
    "GEMINI_URL",
    "GEMINI_API_KEY",
    "OCR_ENGINE",
    "OCR_BOOST",
    "OCR_WORKER_COUNT",
)


@pytest.fixture
def sandbox(sandbox: Sandbox) -> Sandbox:
    registry._shared.forget()
    return sandbox


@pytest.fixture
def environment(sandbox: Sandbox, tmp_path: Path) -> dict[str, str]:
    """For worker processes."""
    return {
        "PIPELINE_SANDBOX_URL": sandbox.url,
        "PIPELINE_DOCUMENT_FOLDER": str(tmp_path / "documents"),
        "PIPELINE_BACKOFF_SCALE": "0.01",
    }


@pytest.fixture
def settings(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> DocumentSettings:
    """For phases that run in the test itself."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return DocumentSettings()
