"""Settings of the document workflow, read from the environment. Secrets are never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipeline.http.addresses import DEFAULT_PORTS, AddressPolicy, host_port
from pipeline.http.client import MEBIBYTE

DEFAULT_SANDBOX = "http://127.0.0.1:8099"
GEMINI = "https://generativelanguage.googleapis.com/v1beta"
# The account that the sandbox's registry knows; it opens nothing else.
DEMO_USER, DEMO_PASSWORD = "demo", "demo-registre"


def _named(name: str, default: Any, **limits: Any) -> Any:
    return Field(default, validation_alias=AliasChoices(name), **limits)


class DocumentSettings(BaseSettings):
    """``REGISTRY_…`` and ``GEMINI_…``: outside systems; ``OCR_…``: how to read; ``PIPELINE_DOCUMENT_…``: the bounds."""

    model_config = SettingsConfigDict(
        env_prefix="PIPELINE_DOCUMENT_",
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    folder: Path = Path(".pipeline") / "documents"
    max_bytes: int = Field(50 * MEBIBYTE, gt=0)
    max_pages: int = Field(500, gt=0)
    max_pixels: int = Field(40_000_000, gt=0, description="of one page at the chosen resolution; an A0 sheet has 31")
    dpi: int = Field(200, ge=72, le=600)
    connect_seconds: float = Field(5.0, gt=0)
    read_seconds: float = Field(20.0, gt=0)
    total_seconds: float = Field(120.0, gt=0)

    sandbox_url: str = _named("PIPELINE_SANDBOX_URL", DEFAULT_SANDBOX)
    registry_url: str = _named("REGISTRY_URL", "")
    registry_user: str = _named("REGISTRY_USER", "")
    registry_password: SecretStr = _named("REGISTRY_PASSWORD", SecretStr(""))

    ocr_worker_count: int = _named("OCR_WORKER_COUNT", 2, ge=1, le=1000)
    ocr_engine: Literal["local", "gemini"] = _named("OCR_ENGINE", "local")
    ocr_boost: Literal["local", "gemini", "model"] = _named("OCR_BOOST", "local")

    gemini_url: str = _named("GEMINI_URL", "")
    gemini_model: str = _named("GEMINI_MODEL", "gemini-2.5-flash", pattern=r"^[A-Za-z0-9._-]+$")
    gemini_api_key: SecretStr | None = _named("GEMINI_API_KEY", None)
    gemini_seconds: float = _named("GEMINI_TIMEOUT_SECONDS", 90.0, gt=0)

    @field_validator("sandbox_url", "registry_url", "gemini_url")
    @classmethod
    def _http_address(cls, value: str) -> str:
        if value and (urlsplit(value).scheme not in DEFAULT_PORTS or not urlsplit(value).hostname):
            raise ValueError("must look like http://host:port or https://host/path")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _account_is_complete(self) -> Self:
        if self.registry_url and not (self.registry_user and self.registry_password.get_secret_value()):
            raise ValueError("REGISTRY_URL is set: REGISTRY_USER and REGISTRY_PASSWORD must be set too")
        return self

    @property
    def registry(self) -> tuple[str, str, SecretStr]:
        """Address, user and password: the registry that was set, or the sandbox's."""
        if self.registry_url:
            return self.registry_url, self.registry_user, self.registry_password
        return f"{self.sandbox_url}/registry", DEMO_USER, SecretStr(DEMO_PASSWORD)

    @property
    def gemini(self) -> str:
        """Gemini's address: the one that was set, Google's own if there is a key, or else the sandbox's."""
        return self.gemini_url or (GEMINI if self.gemini_api_key else f"{self.sandbox_url}/gemini/v1beta")


def only(url: str) -> AddressPolicy:
    """Reach this host and port, which the operator named, and nothing else."""
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    return AddressPolicy(allowed_hosts=frozenset({host_port(parts.hostname or "", port)}), ports=frozenset())
