"""Settings of the website workflow, read from the environment. Secrets are never shown."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from actors.website.chat import ModelEndpoint
from pipeline import Throttle
from pipeline.http.addresses import DEFAULT_PORTS, AddressPolicy, host_port
from pipeline.http.client import MEBIBYTE, USER_AGENT, Limits

DEFAULT_SANDBOX = "http://127.0.0.1:8099"
DEFAULT_MODEL_URL = "https://api.openai.com/v1"


class WebsiteSettings(BaseSettings):
    """``PIPELINE_WEBSITE_…`` for fetching and prompts, ``MODEL_…`` for the model, and the sandbox's address."""

    model_config = SettingsConfigDict(
        env_prefix="PIPELINE_WEBSITE_", frozen=True, extra="ignore", env_ignore_empty=True, populate_by_name=True
    )

    user_agent: str = USER_AGENT
    respect_robots: bool = True
    allow_private: bool = False
    allowed_hosts: Annotated[frozenset[str], NoDecode] = frozenset()
    ports: Annotated[frozenset[int], NoDecode] = AddressPolicy.ports
    connect_seconds: float = Field(5.0, gt=0)
    read_seconds: float = Field(10.0, gt=0)
    total_seconds: float = Field(30.0, gt=0)
    max_redirects: int = Field(5, ge=0, le=20)
    max_bytes: int = Field(5 * MEBIBYTE, gt=0)
    token_budget: int = Field(6000, ge=500)
    prompts_folder: Path | None = None
    # Off unless set: so many jobs are sent to the first phase a scan, and to each of the others a cycle.
    scan_jobs: int | None = Field(None, gt=0)
    scan_seconds: float = Field(60.0, gt=0)
    cycle_jobs: int | None = Field(None, gt=0)
    cycle_seconds: float = Field(5.0, gt=0)

    sandbox_url: str = Field(DEFAULT_SANDBOX, validation_alias=AliasChoices("PIPELINE_SANDBOX_URL"))
    model_url: str = Field("", validation_alias=AliasChoices("MODEL_URL"))
    model_name: str = Field("", validation_alias=AliasChoices("MODEL_NAME"))
    model_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("MODEL_API_KEY"))
    model_seconds: float = Field(90.0, gt=0, validation_alias=AliasChoices("MODEL_TIMEOUT_SECONDS"))
    model_max_tokens: int = Field(1200, gt=0, validation_alias=AliasChoices("MODEL_MAX_TOKENS"))
    model_json_mode: bool = Field(True, validation_alias=AliasChoices("MODEL_JSON_MODE"))
    model_price_in: Decimal | None = Field(None, ge=0, validation_alias=AliasChoices("MODEL_PRICE_IN_PER_MILLION"))
    model_price_out: Decimal | None = Field(None, ge=0, validation_alias=AliasChoices("MODEL_PRICE_OUT_PER_MILLION"))

    @property
    def scan(self) -> Throttle | None:
        """How fast jobs enter the first phase."""
        return Throttle(self.scan_jobs, self.scan_seconds) if self.scan_jobs else None

    @property
    def cycle(self) -> Throttle | None:
        """How fast jobs enter the phases after it."""
        return Throttle(self.cycle_jobs, self.cycle_seconds) if self.cycle_jobs else None

    @field_validator("allowed_hosts", "ports", mode="before")
    @classmethod
    def _comma_separated(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("sandbox_url", "model_url")
    @classmethod
    def _http_address(cls, value: str) -> str:
        if value and (urlsplit(value).scheme not in DEFAULT_PORTS or not urlsplit(value).hostname):
            raise ValueError("must look like http://host:port or https://host/v1")
        return value.rstrip("/")

    @property
    def uses_sandbox(self) -> bool:
        """Whether no real model is set; the sandbox's pages may then be fetched too."""
        return not (self.model_url or self.model_api_key)

    @property
    def address_policy(self) -> AddressPolicy:
        """Public addresses, what the operator named, and the sandbox if it is in use or was named itself."""
        hosts = {host.lower() for host in self.allowed_hosts}
        if self.uses_sandbox or "sandbox_url" in self.model_fields_set:
            hosts.add(_host_port(self.sandbox_url))
        return AddressPolicy(self.allow_private, frozenset(hosts), self.ports)

    @property
    def limits(self) -> Limits:
        """Bounds of one fetch."""
        return Limits(
            connect=self.connect_seconds,
            read=self.read_seconds,
            total=self.total_seconds,
            max_redirects=self.max_redirects,
            max_raw=self.max_bytes,
            max_body=self.max_bytes,
        )

    @property
    def model(self) -> ModelEndpoint:
        """The model to ask: the one that was set, or the sandbox's."""
        real_url = self.model_url or (DEFAULT_MODEL_URL if self.model_api_key else "")
        return ModelEndpoint(
            url=real_url or f"{self.sandbox_url}/v1",
            name=self.model_name or ("gpt-4o-mini" if real_url else "sandbox"),
            api_key=self.model_api_key,
            seconds=self.model_seconds,
            max_output_tokens=self.model_max_tokens,
            json_mode=self.model_json_mode,
            price_in=self.model_price_in,
            price_out=self.model_price_out,
        )


def _host_port(url: str) -> str:
    parts = urlsplit(url)
    return host_port(parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme])
