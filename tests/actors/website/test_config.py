"""Settings: the sandbox without a key, the real model with one, loopback only where it was named."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from actors.website.config import WebsiteSettings
from pipeline.declare.phase import Throttle

NAMES = ("MODEL_URL", "MODEL_NAME", "MODEL_API_KEY", "PIPELINE_SANDBOX_URL")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_without_a_key_the_sandbox_is_the_model() -> None:
    """And its pages, on its port only, may be fetched."""
    settings = WebsiteSettings()
    assert (settings.model.url, settings.model.name) == ("http://127.0.0.1:8099/v1", "sandbox")
    assert settings.address_policy.allowed_hosts == {"127.0.0.1:8099"}


def test_with_a_key_loopback_is_shut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Production does not reach the sandbox's port by accident."""
    monkeypatch.setenv("MODEL_API_KEY", "sk-secret")
    settings = WebsiteSettings()
    assert settings.model.url == "https://api.openai.com/v1"
    assert not settings.address_policy.allowed_hosts
    assert "sk-secret" not in repr(settings) + repr(settings.model)


def test_a_model_without_a_key_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for one that runs in the house."""
    monkeypatch.setenv("MODEL_URL", "http://10.0.0.5:8000/v1/")
    monkeypatch.setenv("MODEL_NAME", "local")
    endpoint = WebsiteSettings().model
    assert (endpoint.url, endpoint.name, endpoint.api_key) == ("http://10.0.0.5:8000/v1", "local", None)


def test_a_sandbox_that_was_named_is_allowed_beside_a_real_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Naming it is the permission."""
    monkeypatch.setenv("MODEL_API_KEY", "sk-secret")
    monkeypatch.setenv("PIPELINE_SANDBOX_URL", "http://localhost:9000/")
    assert WebsiteSettings().address_policy.allowed_hosts == {"localhost:9000"}


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts and ports."""
    monkeypatch.setenv("PIPELINE_WEBSITE_ALLOWED_HOSTS", "Intranet.corp:8080, 10.0.0.9:80")
    monkeypatch.setenv("PIPELINE_WEBSITE_PORTS", "80,443")
    policy = WebsiteSettings().address_policy
    assert policy.ports == {80, 443}
    assert {"intranet.corp:8080", "10.0.0.9:80"} < policy.allowed_hosts


def test_wrong_settings_are_named_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two mistakes, one message."""
    monkeypatch.setenv("PIPELINE_WEBSITE_TOKEN_BUDGET", "few")
    monkeypatch.setenv("MODEL_URL", "somewhere")
    with pytest.raises(ValidationError) as wrong:
        WebsiteSettings()
    assert {str(error["loc"][0]) for error in wrong.value.errors()} == {"token_budget", "MODEL_URL"}


def test_the_throttles_of_old_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten a scan into the first phase, three a cycle into the others; off unless asked for."""
    assert (WebsiteSettings().scan, WebsiteSettings().cycle) == (None, None)
    monkeypatch.setenv("PIPELINE_WEBSITE_SCAN_JOBS", "10")
    monkeypatch.setenv("PIPELINE_WEBSITE_CYCLE_JOBS", "3")
    assert (WebsiteSettings().scan, WebsiteSettings().cycle) == (Throttle(10, 60.0), Throttle(3, 5.0))
