"""How an application plugs its own parts into the engine: migrations, routes, commands, dashboard views, metrics.

Parts are named, ``"package.module:attribute"``, and imported where they are needed: a worker never loads the routes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

_extensions: dict[str, Extension] = {}


@dataclass(frozen=True)
class Extension:
    """What an application adds. See ``extend`` for each part."""

    name: str
    migrate: str | None = None
    routes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    views: str | None = None
    metrics: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)


def extend(
    name: str,
    *,
    migrate: str | None = None,
    routes: Sequence[str] = (),
    commands: Sequence[str] = (),
    views: str | None = None,
    metrics: Sequence[str] = (),
    outputs: Mapping[str, str] | None = None,
) -> None:
    """Register an application's parts, in the module that declares its workflows. Repeating it changes nothing.

    ``migrate``: a function ``(connection) -> None``, called by ``pipeline migrate`` after the engine's migrations.
    ``routes``: FastAPI routers, served beside ``/v1``; ``commands``: functions ``(app: typer.Typer) -> None`` that add
    commands to ``pipeline``; ``views``: a folder of the dashboard's JavaScript, as a function ``() -> Path``;
    ``metrics``: functions ``(connection) -> Iterable[Metric]`` for ``/metrics``; ``outputs``: by workflow, a function
    ``(connection, job_id) -> value`` that reads what a job has stored, shown with the job.
    """
    _extensions[name] = Extension(
        name, migrate, tuple(routes), tuple(commands), views, tuple(metrics), dict(outputs or {})
    )


def extensions() -> list[Extension]:
    """All that are registered, in their order."""
    return list(_extensions.values())


def load(reference: str) -> Any:
    """The object that ``"package.module:attribute"`` names."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)
