"""Settings of the document workflow, read from the environment. Secrets are never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from actors.settings import DEFAULT_SANDBOX, HttpAddress, named
from pipeline.http.addresses import AddressPolicy, authority
from pipeline.http.client import MEBIBYTE

GEMINI = "https://generativelanguage.googleapis.com/v1beta"
# The account that the sandbox's registry knows; it opens nothing else.
DEMO_USER, DEMO_PASSWORD = "demo", "demo-registre"


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
    doubt_below: float = Field(0.93, ge=0, le=1, description="pages read with less confidence are marked as doubtful")
    connect_seconds: float = Field(5.0, gt=0)
    read_seconds: float = Field(20.0, gt=0)
    total_seconds: float = Field(120.0, gt=0)

    sandbox_url: HttpAddress = named("PIPELINE_SANDBOX_URL", DEFAULT_SANDBOX)
    registry_url: HttpAddress = named("REGISTRY_URL", "")
    registry_user: str = named("REGISTRY_USER", "")
    registry_password: SecretStr = named("REGISTRY_PASSWORD", SecretStr(""))

    ocr_worker_count: int = named("OCR_WORKER_COUNT", 2, ge=1, le=1000)
    ocr_engine: Literal["local", "gemini"] = named("OCR_ENGINE", "local")
    ocr_boost: Literal["local", "gemini", "model"] = named("OCR_BOOST", "local")

    gemini_url: HttpAddress = named("GEMINI_URL", "")
    gemini_model: str = named("GEMINI_MODEL", "gemini-2.5-flash", pattern=r"^[A-Za-z0-9._-]+$")
    gemini_api_key: SecretStr | None = named("GEMINI_API_KEY", None)
    gemini_seconds: float = named("GEMINI_TIMEOUT_SECONDS", 90.0, gt=0)

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
    return AddressPolicy(allowed_hosts=frozenset({authority(url)}), ports=frozenset())
