"""What the environment says about webhooks."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from pipeline.declare.errors import BadInput
from pipeline.http.addresses import AddressPolicy
from pipeline.http.client import Limits
from pipeline.settings import read
from pipeline.webhooks.signature import decode_secret

KIBIBYTE = 1024
DEFAULT = "default"


def _comma_separated(value: object) -> object:
    return [part.strip().lower() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


class WebhookSettings(BaseSettings):
    """Of `pipeline.webhooks`: with what webhooks are signed, and whom they may reach."""

    model_config = SettingsConfigDict(
        env_prefix="PIPELINE_WEBHOOK_", frozen=True, extra="ignore", env_ignore_empty=True, populate_by_name=True
    )

    secrets: SecretStr | None = Field(
        None, description="`whsec_…`, or `name:whsec_…` of several, comma-separated; two of one name both sign"
    )
    allowed_hosts: Annotated[frozenset[str], NoDecode, BeforeValidator(_comma_separated)] = Field(
        frozenset(), description="`host:port` that you vouch for, comma-separated: private addresses, other ports, http"
    )
    allow_private: bool = Field(False, description="private and loopback addresses are reached, and http is spoken")
    seconds: float = Field(15.0, gt=0, le=30, description="for one delivery, name look-up and answer included")

    @property
    def policy(self) -> AddressPolicy:
        """Whom they may reach: the public, and those that the operator named."""
        return AddressPolicy(self.allow_private, self.allowed_hosts)

    @property
    def limits(self) -> Limits:
        """Of an answer the status counts; its body is not kept, and is read no further than this."""
        return Limits(
            connect=min(5.0, self.seconds),
            read=self.seconds,
            total=self.seconds,
            max_raw=64 * KIBIBYTE,
            max_body=64 * KIBIBYTE,
            cut_oversize=True,
        )

    def keys(self, name: str) -> list[bytes]:
        """Those that sign under this name. BadInput if there is none."""
        setting = self.secrets.get_secret_value() if self.secrets else ""
        parts = [part.strip() for part in setting.split(",") if part.strip()]
        named = [part.rpartition(":") for part in parts]
        try:
            found = [decode_secret(secret) for known, _, secret in named if (known.strip() or DEFAULT) == name]
        except BadInput as error:
            raise BadInput(f"PIPELINE_WEBHOOK_SECRETS: {error}") from None
        if not found:
            prefix = "" if name == DEFAULT else f"{name}:"
            raise BadInput(
                f"webhooks are signed, and PIPELINE_WEBHOOK_SECRETS has no secret {name!r}: "
                f"add {prefix}whsec_… for the workers (make one with: "
                'echo "whsec_$(openssl rand -base64 32)")'
            )
        return found


@lru_cache(maxsize=1)
def get() -> WebhookSettings:
    """Of this process, read once."""
    return read(WebhookSettings)
