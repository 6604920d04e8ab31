"""The times of a run: those that users have, five times as fast.

Every default in seconds is divided by the same number, so that the proportions are the defaults': a heartbeat is longer
than the patience with a missing worker, a lease is fifteen heartbeats. At the defaults themselves a frozen worker
would keep its jobs for five minutes, and a run would take a day. What is not in proportion is not scaled: how long a
container may take to stop, and the time limits of the phases.
"""

from __future__ import annotations

from pydantic import AliasChoices

from pipeline.settings import Settings

FASTER = 5.0
# A service manager's patience is the same in a test.
UNSCALED = {"shutdown_grace_seconds"}


def _scaled(name: str) -> float:
    return float(Settings.model_fields[name].default) / FASTER


HEARTBEAT = _scaled("heartbeat_seconds")
HEALTH = _scaled("health_seconds")
LEASE = _scaled("stale_seconds")


def environment() -> dict[str, str]:
    """The settings that make the workers' times these; a setting that is added later is scaled like all others."""
    names = [name for name in Settings.model_fields if name.endswith("_seconds") and name not in UNSCALED]
    return {
        **{_variable(name): f"{_scaled(name):g}" for name in names},
        "PIPELINE_BACKOFF_SCALE": f"{1 / FASTER:g}",
    }


def _variable(name: str) -> str:
    alias = Settings.model_fields[name].validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else f"PIPELINE_{name.upper()}"
