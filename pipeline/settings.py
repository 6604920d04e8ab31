"""The only reader of the environment. Wrong values are named at start, all at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import cycle
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any, Literal, TypeVar

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from sqlalchemy import URL

from pipeline.declare.errors import BadInput

Kind = TypeVar("Kind", bound=BaseSettings)


def _named(name: str, **limits: Any) -> Any:
    return Field(validation_alias=AliasChoices(name), **limits)


class Settings(BaseSettings):
    """Every number can be set; times are in seconds."""

    model_config = SettingsConfigDict(env_prefix="PIPELINE_", frozen=True, extra="ignore")

    database_url: SecretStr = _named(
        "DATABASE_URL",
        description="PostgreSQL; of several hosts, comma-separated, the one that takes writes is used",
    )
    database_session_url: SecretStr | None = _named(
        "DATABASE_SESSION_URL",
        default=None,
        description="the same database past a pooler, if DATABASE_URL leads to one in transaction mode",
    )
    rabbitmq_url: SecretStr = _named("RABBITMQ_URL", description="RabbitMQ; nodes of a cluster are separated by ;")
    rabbitmq_management_url: SecretStr | None = _named(
        "RABBITMQ_MANAGEMENT_URL",
        default=None,
        description="its management API: lost messages are noticed sooner by it",
    )
    worker_id: str | None = _named(
        "WORKER_ID",
        default=None,
        max_length=60,
        pattern=r"^[A-Za-z0-9._-]+$",
        description="begins the ids of this machine's workers; otherwise the host's name",
    )
    stale_seconds: float = _named(
        "JOB_LOCK_TIMEOUT_SECONDS",
        default=300.0,
        gt=0,
        description="after which a frozen worker loses its jobs; in force after pipeline migrate",
    )

    workflows: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="modules with workflows of your own, comma-separated"
    )
    queue_type: Literal["classic", "quorum"] = Field(default="classic", description="of new queues; cannot be changed")
    code_version: str | None = Field(
        default=None,
        max_length=60,
        description="which code this is, for people; unset: a digest of the workflows",
    )
    async_concurrency: int = Field(
        default=500, gt=0, description="how many attempts at async phases one process runs at once"
    )
    heartbeat_seconds: float = Field(default=20.0, gt=0, description="between two signs of life of a worker")
    health_seconds: float = Field(default=30.0, gt=0, description="between two health checks and reports")
    patience_seconds: float = Field(default=5.0, gt=0, description="how long a worker may be missing before it is dead")
    backstop_seconds: float = Field(default=30.0, ge=5, description="between two looks of a relay that nobody wakes")
    shutdown_grace_seconds: float = Field(
        default=4.0, ge=0, description="for running jobs at shutdown; then they go back at no cost"
    )
    backoff_scale: float = Field(default=1.0, gt=0, description="multiplies every backoff; below 1 for demos and tests")
    keep_days: float = Field(default=30.0, gt=0, description="how long finished jobs and their history are kept")
    keep_failed_days: float | None = Field(
        default=None, gt=0, description="the same for failed jobs; unset: until somebody replays or discards them"
    )
    keep_audit_days: float = Field(default=365.0, gt=0, description="how long it is kept who did what")
    temp_folder: Path = Field(
        default_factory=lambda: Path(gettempdir()) / "pipeline-jobs", description="for the folders of running jobs"
    )
    log_format: Literal["console", "json"] = "console"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    failpoints: str = Field(
        default="", description="for tests of the engine alone: where a process dies (docs/reference/failpoints.md)"
    )
    api_host: str = Field(default="127.0.0.1", description="where the API listens; elsewhere only with tokens")
    api_port: int = Field(default=8080, ge=0, le=65535, description="0 takes a free one")
    api_tokens: SecretStr | None = Field(
        default=None, description="role:token or role:sha256:HASH, …; roles are viewer and operator"
    )
    api_max_body: int = Field(default=1 << 20, ge=1 << 10, description="of a request")
    api_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s?#]+$",
        description="where people reach the API, for links; unset: its own host and port",
    )
    event_secret: SecretStr | None = Field(
        default=None,
        description="signs links to events; of several, comma-separated, the first signs and all are accepted",
    )

    @field_validator("workflows", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("database_url", "database_session_url")
    @classmethod
    def _postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _is_address(value.get_secret_value()):
            raise ValueError("must look like postgresql://user:password@host:5432/database")
        return value

    @field_validator("rabbitmq_url")
    @classmethod
    def _amqp(cls, value: SecretStr) -> SecretStr:
        if not all(part.startswith(("amqp://", "amqps://")) for part in value.get_secret_value().split(";")):
            raise ValueError("must look like amqp://user:password@host:5672/vhost")
        return value

    @property
    def dsn(self) -> str:
        """The database's address as psycopg takes it."""
        return without_driver(self.database_url.get_secret_value())

    @property
    def session_dsn(self) -> str:
        """The same for connections that are more than transactions: locks, notifications."""
        return without_driver((self.database_session_url or self.database_url).get_secret_value())

    @property
    def database_place(self) -> str:
        """Hosts, ports and database, for people: without user and password."""
        return where(self.dsn)

    @property
    def pooled(self) -> bool:
        """Whether each transaction at ``dsn`` may have another session."""
        return self.database_session_url is not None

    @property
    def address_of_api(self) -> str:
        """Where people reach the API, without a slash at the end."""
        return self.api_url.rstrip("/") if self.api_url else f"http://{self.api_host}:{self.api_port}"

    @property
    def sqlalchemy_url(self) -> str:
        """The database's address as SQLAlchemy takes it, which has several hosts in the query."""
        return sqlalchemy_url(self.dsn)


def without_driver(address: str) -> str:
    """The address as psycopg takes it; SQLAlchemy's names the driver as well."""
    scheme, separator, rest = address.partition("://")
    return f"{scheme.split('+')[0]}://{rest}" if separator else address


def where(dsn: str) -> str:
    """``host:port,host:port/database``."""
    parts = conninfo_to_dict(dsn)
    return f"{','.join(_hosts(parts))}/{parts.get('dbname') or ''}"


def _hosts(parts: Mapping[str, Any]) -> tuple[str, ...]:
    """One port may be said for all of them, as libpq has it."""
    hosts = str(parts.get("host") or parts.get("hostaddr") or "").split(",")
    ports = str(parts.get("port") or "5432").split(",")
    return tuple(f"{host}:{port or 5432}" for host, port in zip(hosts, cycle(ports), strict=False))


def sqlalchemy_url(dsn: str) -> str:
    """What SQLAlchemy takes for an address of psycopg's."""
    parts = conninfo_to_dict(dsn)
    hosts = _hosts(parts)
    if len(hosts) == 1:
        return "postgresql+psycopg://" + dsn.split("://", 1)[1]
    user, password, database = (parts.pop(name, None) for name in ("user", "password", "dbname"))
    others = {name: str(value) for name, value in parts.items() if name not in ("host", "port")}
    query = {"host": hosts, **others}
    address = URL.create("postgresql+psycopg", user, password, database=database, query=query)  # type: ignore[arg-type]
    return address.render_as_string(hide_password=False)


def _is_address(value: str) -> bool:
    if not value.startswith(("postgresql://", "postgresql+psycopg://", "postgres://")):
        return False
    try:
        conninfo_to_dict(without_driver(value))
    except ProgrammingError:  # its message quotes the address
        return False
    return True


def load(**overrides: Any) -> Settings:
    """Read the environment."""
    return read(Settings, **overrides)


def read(kind: type[Kind], **values: Any) -> Kind:
    """Settings of the project or of one workflow; raises BadInput that names every wrong one."""
    try:
        return kind(**values)
    except ValidationError as error:
        raise BadInput(_explain(error, kind.model_config.get("env_prefix", ""))) from None


@lru_cache(maxsize=1)
def get() -> Settings:
    """The settings of this process, read once."""
    return load()


def _explain(error: ValidationError, prefix: str) -> str:
    lines = [_line(item, prefix) for item in error.errors(include_url=False, include_input=False)]
    return "settings are wrong or missing:\n" + "\n".join(lines)


def _line(item: Any, prefix: str) -> str:
    name = str(item["loc"][0]) if item["loc"] else ""
    known = name if name.isupper() or not name else f"{prefix}{name.upper()}"
    if item["type"] == "missing":
        return f'  {known} is not set: export it, or run "pipeline services start" and eval "$(pipeline services env)"'
    return f"  {known}: {item['msg'].removeprefix('Value error, ')}"
