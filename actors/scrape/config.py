"""Settings of the scrape workflow, read from the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from actors.scrape.cache import Cache
from actors.scrape.money import REFERENCE_RATES
from pipeline.http.addresses import DEFAULT_PORTS, AddressPolicy, host_port
from pipeline.http.client import MEBIBYTE, USER_AGENT, Limits


def _named(name: str, default: Any, **limits: Any) -> Any:
    return Field(default, validation_alias=AliasChoices(name), **limits)


class ScrapeSettings(BaseSettings):
    """``SCRAPE_…`` for fetching and the breaker, the seed's ``CACHE_…``, and the sandbox's address."""

    model_config = SettingsConfigDict(
        env_prefix="SCRAPE_", frozen=True, extra="ignore", env_ignore_empty=True, populate_by_name=True
    )

    user_agent: str = USER_AGENT
    allow_private: bool = False
    allowed_hosts: Annotated[frozenset[str], NoDecode] = frozenset()
    connect_seconds: float = Field(5.0, gt=0)
    read_seconds: float = Field(10.0, gt=0)
    total_seconds: float = Field(30.0, gt=0)
    max_bytes: int = Field(2 * MEBIBYTE, gt=0)
    max_listings: int = Field(500, gt=0, le=5000)

    breaker_failures: int = Field(5, ge=1, description="failures in a row that open a source's breaker")
    breaker_seconds: float = Field(300.0, gt=0, description="how long it stays open before one job may probe")
    probe_seconds: float = Field(60.0, gt=0, description="a probe that has not ended by then is given up")
    limited_seconds: float = Field(60.0, gt=0, description="the pause after a 429 that names no time")

    # What one unit of a currency is worth in US dollars. Fixed on purpose: a price keeps its value in cents.
    rates: dict[str, float] = Field(default_factory=lambda: dict(REFERENCE_RATES))

    cache_enabled: bool = _named("CACHE_ENABLED", True)
    cache_ttl_seconds: float = _named("CACHE_TTL_SECONDS", 3600.0, gt=0)
    cache_folder: Path = _named("CACHE_FOLDER", Path(".pipeline/cache"))
    cache_max_bytes: int = _named("CACHE_MAX_BYTES", 256 * MEBIBYTE, ge=MEBIBYTE)
    sandbox_url: str = _named("PIPELINE_SANDBOX_URL", "")

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _comma_separated(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @property
    def address_policy(self) -> AddressPolicy:
        """Public addresses, what the operator named, and the sandbox if its address is set."""
        hosts = {host.lower() for host in self.allowed_hosts}
        if self.sandbox_url:
            parts = urlsplit(self.sandbox_url)
            hosts.add(host_port(parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 80)))
        return AddressPolicy(self.allow_private, frozenset(hosts))

    @property
    def limits(self) -> Limits:
        """Bounds of one fetch."""
        return Limits(
            connect=self.connect_seconds,
            read=self.read_seconds,
            total=self.total_seconds,
            max_raw=self.max_bytes,
            max_body=self.max_bytes,
        )

    @property
    def cache(self) -> Cache | None:
        """The cache of answers, unless it is switched off."""
        return Cache(self.cache_folder, self.cache_ttl_seconds, self.cache_max_bytes) if self.cache_enabled else None
