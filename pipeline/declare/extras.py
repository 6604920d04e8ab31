"""Parts of the engine that need packages which a plain installation does not bring."""

from __future__ import annotations

from importlib.util import find_spec

from pipeline.declare.errors import BadInput

EXTRAS = {
    "api": ("fastapi", "prometheus_client", "uvicorn"),
    "http": ("brotli", "httpcore", "httpx", "idna"),
    "tracing": ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"),
}


class MissingExtra(BadInput, ImportError):
    """A part that is not installed was asked for; the message says which extra brings it."""


def require(extra: str, what: str) -> None:
    """Raise ``MissingExtra`` unless the packages of the extra are there. Nothing is imported."""
    if not all(_there(module) for module in EXTRAS[extra]):
        raise MissingExtra(f'{what} needs packages that are not installed here: pip install "pipeline[{extra}]"')


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # One of the packages around it is missing.
        return False
