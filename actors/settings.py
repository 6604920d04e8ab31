"""What the settings of several workflows have in common: addresses, and the bounds of a fetch."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from pipeline.http.addresses import DEFAULT_PORTS, AddressPolicy, authority
from pipeline.http.client import MEBIBYTE, USER_AGENT, Limits

DEFAULT_SANDBOX = "http://127.0.0.1:8099"


def named(name: str, default: Any, **limits: Any) -> Any:
    """A field that is read from the variable ``name``, whatever the prefix of the others is."""
    return Field(default, validation_alias=AliasChoices(name), **limits)


def _comma_separated(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _http_address(value: str) -> str:
    if value and (urlsplit(value).scheme not in DEFAULT_PORTS or not urlsplit(value).hostname):
        raise ValueError("must look like http://host:port or https://host/path")
    return value.rstrip("/")


CommaSeparated = BeforeValidator(_comma_separated)
HttpAddress = Annotated[str, AfterValidator(_http_address)]


class FetchSettings(BaseSettings):
    """Which addresses a workflow fetches from, and the bounds of one fetch."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True, populate_by_name=True)

    user_agent: str = USER_AGENT
    allow_private: bool = False
    allowed_hosts: Annotated[frozenset[str], NoDecode, CommaSeparated] = frozenset()
    connect_seconds: float = Field(5.0, gt=0)
    read_seconds: float = Field(10.0, gt=0)
    total_seconds: float = Field(30.0, gt=0)
    max_bytes: int = Field(5 * MEBIBYTE, gt=0)
    sandbox_url: HttpAddress = named("PIPELINE_SANDBOX_URL", "")

    @property
    def reaches_sandbox(self) -> bool:
        """Whether the sandbox, which has a private address, may be fetched from."""
        return bool(self.sandbox_url)

    @property
    def address_policy(self) -> AddressPolicy:
        """Public addresses, the hosts that the operator named, and the sandbox if it is in use."""
        hosts = {host.lower() for host in self.allowed_hosts}
        if self.reaches_sandbox:
            hosts.add(authority(self.sandbox_url))
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
