"""Settings of the website workflow, read from the environment. Secrets are never shown."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from actors.settings import DEFAULT_SANDBOX, CommaSeparated, FetchSettings, HttpAddress, named
from actors.website.browser.render import Browser
from actors.website.chat import ModelEndpoint
from pipeline import Throttle
from pipeline.http.addresses import AddressPolicy
from pipeline.http.client import Limits

DEFAULT_MODEL_URL = "https://api.openai.com/v1"


class WebsiteSettings(FetchSettings):
    """``PIPELINE_WEBSITE_…`` for fetching and prompts, ``MODEL_…`` for the model, and the sandbox's address."""

    model_config = SettingsConfigDict(env_prefix="PIPELINE_WEBSITE_")

    pool: int = Field(10, gt=0, description="of each phase; in force after pipeline migrate")
    respect_robots: bool = True
    ports: Annotated[frozenset[int], NoDecode, CommaSeparated] = AddressPolicy.ports
    max_redirects: int = Field(5, ge=0, le=20)
    token_budget: int = Field(6000, ge=500)
    prompts_folder: Path | None = None
    render: bool = Field(
        False, description="pages that are empty without scripts, in a browser; needs the extra render"
    )
    browser: str = Field("", description="the path of Chromium or Chrome; empty: the one that Playwright has installed")
    browser_sandbox: bool = Field(True, description="Chromium's own; it never has one when it runs as root")
    browser_seconds: float = Field(20.0, gt=0, le=60)
    browser_megabytes: int = Field(1000, ge=300, description="of all processes of one browser")
    browsers: int = Field(1, ge=1, le=20, description="at once in a worker process")
    # Off unless set: so many jobs are sent to the first phase a scan, and to each of the others a cycle.
    scan_jobs: int | None = Field(None, gt=0)
    scan_seconds: float = Field(60.0, gt=0)
    cycle_jobs: int | None = Field(None, gt=0)
    cycle_seconds: float = Field(5.0, gt=0)

    sandbox_url: HttpAddress = named("PIPELINE_SANDBOX_URL", DEFAULT_SANDBOX)
    model_url: HttpAddress = named("MODEL_URL", "")
    model_name: str = named("MODEL_NAME", "")
    model_api_key: SecretStr | None = named("MODEL_API_KEY", None)
    model_seconds: float = named("MODEL_TIMEOUT_SECONDS", 90.0, gt=0)
    model_max_tokens: int = named("MODEL_MAX_TOKENS", 1200, gt=0)
    model_json_mode: bool = named("MODEL_JSON_MODE", True)
    model_price_in: Decimal | None = named("MODEL_PRICE_IN_PER_MILLION", None, ge=0)
    model_price_out: Decimal | None = named("MODEL_PRICE_OUT_PER_MILLION", None, ge=0)

    @model_validator(mode="after")
    def _can_render(self) -> Self:
        if self.render and find_spec("playwright") is None:
            raise ValueError("PIPELINE_WEBSITE_RENDER needs Playwright: pip install 'pipeline[render]'")
        return self

    @property
    def renderer(self) -> Browser | None:
        """The browser for pages that need one, unless none is wanted."""
        if not self.render:
            return None
        bounds = self.browser_seconds, self.browser_megabytes, self.browsers
        return Browser(self.browser, self.user_agent, self.browser_sandbox, *bounds)

    @property
    def scan(self) -> Throttle | None:
        """How fast jobs enter the first phase."""
        return Throttle(self.scan_jobs, self.scan_seconds) if self.scan_jobs else None

    @property
    def cycle(self) -> Throttle | None:
        """How fast jobs enter the phases after it."""
        return Throttle(self.cycle_jobs, self.cycle_seconds) if self.cycle_jobs else None

    @property
    def uses_sandbox(self) -> bool:
        """Whether no real model is set; the sandbox's pages may then be fetched too."""
        return not (self.model_url or self.model_api_key)

    @property
    def reaches_sandbox(self) -> bool:
        """Also next to a real model, if the sandbox was named."""
        return self.uses_sandbox or "sandbox_url" in self.model_fields_set

    @property
    def address_policy(self) -> AddressPolicy:
        return replace(super().address_policy, ports=self.ports)

    @property
    def limits(self) -> Limits:
        return replace(super().limits, max_redirects=self.max_redirects)

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


@lru_cache(maxsize=1)
def worker_settings() -> WebsiteSettings:
    """The settings of a worker process, read once: reading them takes as long as reading a page."""
    return WebsiteSettings()
