"""Settings of the match workflow, read from the environment. The token is never shown."""

from __future__ import annotations

from functools import lru_cache

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from actors.settings import DEFAULT_SANDBOX, HttpAddress, named
from pipeline.http.addresses import AddressPolicy, authority
from pipeline.http.client import MEBIBYTE, USER_AGENT, Limits

WIKIDATA = "https://www.wikidata.org/w/api.php"
RATE_LIMIT = "wikidata"
# Said to Wikimedia until the operator says how to be reached.
NO_CONTACT = "durable job pipeline, operator unknown; set WIKIDATA_CONTACT to a web or mail address"
# Calls a second that Wikidata takes from a stranger, and from somebody it knows.
STRANGER, KNOWN = 5.0, 50.0


class MatchSettings(BaseSettings):
    """``WIKIDATA_…`` for the API, and the sandbox's address, which is asked while neither address nor token is set."""

    model_config = SettingsConfigDict(env_prefix="WIKIDATA_", frozen=True, extra="ignore", env_ignore_empty=True)

    url: HttpAddress = ""
    token: SecretStr | None = None
    rate: float | None = Field(None, gt=0, le=10_000)
    burst: float | None = Field(None, ge=1, le=10_000)
    contact: str = Field(
        "", max_length=200, pattern=r"^[ -~]*$", description="who runs this: an address of a page or of a mailbox"
    )
    user_agent: str = Field("", max_length=400, pattern=r"^[ -~]*$", description="instead of all that is said of us")
    seconds: float = Field(20.0, gt=0, description="for one call, from beginning to end")
    default_wait: float = Field(5.0, ge=0, le=3600, description="pause after a 429 that does not say how long")
    sandbox_url: HttpAddress = named("PIPELINE_SANDBOX_URL", DEFAULT_SANDBOX)

    @property
    def api(self) -> str:
        """Where to ask: the address that was set, Wikidata itself once there is a token, otherwise the sandbox."""
        return self.url or (WIKIDATA if self.token else f"{self.sandbox_url}/w/api.php")

    @property
    def calls_per_second(self) -> float:
        """What all workers together may ask."""
        return self.rate or (KNOWN if self.token else STRANGER)

    @property
    def bucket(self) -> float:
        """How many calls may come at once after a quiet time."""
        return self.burst or max(self.calls_per_second, 1.0)

    @property
    def rate_limit_burst(self) -> float:
        """The rate limit's own bucket: one half. The other half is for calls that are made later than permitted."""
        return max(self.bucket / 2, 1.0)

    @property
    def lateness(self) -> float:
        """Seconds that a call may be late, so that no second sees more calls than rate and bucket together."""
        return (self.bucket - self.rate_limit_burst) / self.calls_per_second

    @property
    def address_policy(self) -> AddressPolicy:
        """The operator chose this address, so it may be a private one; nothing else may be reached."""
        return AddressPolicy(allowed_hosts=frozenset({authority(self.api)}))

    @property
    def limits(self) -> Limits:
        """Bounds of one call. Entities with thousands of statements are a few megabytes."""
        return Limits(
            read=self.seconds, total=self.seconds, max_redirects=2, max_raw=16 * MEBIBYTE, max_body=32 * MEBIBYTE
        )

    @property
    def agent(self) -> str:
        """Who asks, as Wikimedia's policy wants it: name and version, and in brackets how to reach the operator."""
        return self.user_agent or f"{USER_AGENT} ({self.contact or NO_CONTACT}) record-matching bot"

    @property
    def headers(self) -> dict[str, str]:
        """Sent with every call."""
        known = {"Authorization": f"Bearer {self.token.get_secret_value()}"} if self.token else {}
        return {"User-Agent": self.agent, "Accept": "application/json", **known}


@lru_cache(maxsize=1)
def worker_settings() -> MatchSettings:
    """The settings of a worker process, read once: reading them costs as much as a call."""
    return MatchSettings()
