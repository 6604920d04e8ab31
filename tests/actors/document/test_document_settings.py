"""Settings of the document workflow: defaults that work with the sandbox, and mistakes named at once."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from actors.document.config import DEMO_PASSWORD, DEMO_USER, DocumentSettings, only
from pipeline.declare.errors import BadInput
from pipeline.settings import read
from sandbox import registry


def test_without_an_address_the_sandbox_is_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the account that it knows."""
    monkeypatch.setenv("PIPELINE_SANDBOX_URL", "http://127.0.0.1:9000/")
    url, user, password = DocumentSettings().registry
    assert (url.split(":9000")[1], user, password.get_secret_value()) == ("/registry", DEMO_USER, DEMO_PASSWORD)
    assert (registry.USER, registry.PASSWORD) == (DEMO_USER, DEMO_PASSWORD)


def test_an_address_needs_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo account is never tried at a real registry; a password is not shown in the refusal."""
    monkeypatch.setenv("REGISTRY_URL", "https://documents.example.org")
    monkeypatch.setenv("REGISTRY_PASSWORD", "hunter-two")
    with pytest.raises(ValidationError, match="REGISTRY_USER") as refusal:
        DocumentSettings()
    assert "hunter-two" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OCR_WORKER_COUNT", "0"),
        ("OCR_ENGINE", "magic"),
        ("GEMINI_URL", "ftp://x"),
        ("GEMINI_MODEL", "../x"),
        ("PIPELINE_DOCUMENT_MAX_PAGES", "-1"),
    ],
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """When the worker starts, not at the first document; two mistakes in one message."""
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("OCR_BOOST", "magic")
    with pytest.raises(BadInput, match=rf"(?s){name}: .*OCR_BOOST: |OCR_BOOST: .*{name}: "):
        read(DocumentSettings)


def test_the_pool_is_the_ocr_worker_count() -> None:
    """Two by default."""
    from pipeline.actors import ocr

    assert (ocr.spec.pool, ocr.spec.isolated, ocr.spec.stale_after) == (2, True, 600.0)


def test_a_configured_system_is_the_only_one_reached() -> None:
    """Its own host and port are vouched for, nothing else is."""
    policy = only("https://documents.example.org")
    assert policy.vouches_for("documents.example.org", 443) and not policy.vouches_for("documents.example.org", 80)
    assert not policy.allow_private and not policy.ports
