"""Settings of the scrape workflow, read from the environment."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from actors.scrape.cache import Cache
from actors.scrape.money import REFERENCE_DAY, REFERENCE_RATES
from actors.settings import FetchSettings, named
from pipeline.http.client import MEBIBYTE


class ScrapeSettings(FetchSettings):
    """``SCRAPE_…`` for fetching and the breaker, the seed's ``CACHE_…``, and the sandbox's address."""

    model_config = SettingsConfigDict(env_prefix="SCRAPE_")

    max_bytes: int = Field(2 * MEBIBYTE, gt=0)
    max_listings: int = Field(500, gt=0, le=5000)

    breaker_failures: int = Field(5, ge=1, description="failures in a row that open a source's breaker")
    breaker_seconds: float = Field(300.0, gt=0, description="how long it stays open before one job may probe")
    probe_seconds: float = Field(60.0, gt=0, description="a probe that has not ended by then is given up")
    limited_seconds: float = Field(60.0, gt=0, description="the pause after a 429 that names no time")

    # What one unit of a currency is worth in US dollars. Fixed on purpose: a price keeps its value in cents.
    rates: dict[str, float] = Field(default_factory=lambda: dict(REFERENCE_RATES))
    rates_day: date = Field(REFERENCE_DAY, description="the day that the rates are of; needed with rates of your own")

    cache_enabled: bool = named("CACHE_ENABLED", True)
    cache_ttl_seconds: float = named("CACHE_TTL_SECONDS", 3600.0, gt=0)
    cache_folder: Path = named("CACHE_FOLDER", Path(".pipeline/cache"))
    cache_max_bytes: int = named("CACHE_MAX_BYTES", 256 * MEBIBYTE, ge=MEBIBYTE)

    @model_validator(mode="after")
    def _rates_have_a_day(self) -> Self:
        if "rates" in self.model_fields_set and "rates_day" not in self.model_fields_set:
            raise ValueError("SCRAPE_RATES needs SCRAPE_RATES_DAY: no price is converted at a rate without a date")
        return self

    @property
    def cache(self) -> Cache | None:
        """The cache of answers, unless it is switched off."""
        return Cache(self.cache_folder, self.cache_ttl_seconds, self.cache_max_bytes) if self.cache_enabled else None
