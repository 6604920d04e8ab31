"""How an application plugs its own parts into the engine: migrations, routes, commands, dashboard views, metrics.

Parts are named, ``"package.module:attribute"``, and imported where they are needed: a worker never loads the routes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from pipeline.declare.errors import BadInput

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ADDRESS = re.compile(r"(/([A-Za-z0-9_-]+|\{[a-z_]+\}))+")

_extensions: dict[str, Extension] = {}


@dataclass(frozen=True)
class View:
    """A page of the dashboard. Raises BadInput if the address or the file cannot be one.

    >>> View("/orders", Path("/srv/shop/dashboard/orders.js"), title="Orders").path
    '/orders'

    ``path`` is its address: ``/orders``, or ``/orders/{id}`` for one page each. ``module`` is the JavaScript file that
    exports the page. With a ``title`` the navigation lists it; without one, other pages link to it.
    """

    path: str
    module: Path
    title: str | None = None

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.path):
            raise BadInput(f"{self.path!r} is not the address of a view: use one like /orders or /orders/{{id}}")
        if self.module.suffix != ".js" or not self.module.is_absolute():
            raise BadInput(
                f"a view is an absolute path to a .js file, not {self.module}: start at Path(__file__).parent"
            )
        if self.title and "{" in self.path:
            raise BadInput(f"{self.path} has a parameter, so the navigation cannot link to it: leave its title out")


@dataclass(frozen=True)
class Extension:
    """What an application adds. See ``extend`` for each part."""

    name: str
    migrate: str | None = None
    routes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    views: tuple[View, ...] = ()
    metrics: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise BadInput(f"{self.name!r} is not a name for an extension: use lowercase letters, digits and hyphens")
        if len({view.module.parent for view in self.views}) > 1:
            raise BadInput(f"the views of {self.name} are in several folders: keep them in one")

    @property
    def folder(self) -> Path | None:
        """Where the views' files are."""
        return self.views[0].module.parent if self.views else None


def extend(
    name: str,
    *,
    migrate: str | None = None,
    routes: Sequence[str] = (),
    commands: Sequence[str] = (),
    views: Sequence[View] = (),
    metrics: Sequence[str] = (),
    outputs: Mapping[str, str] | None = None,
) -> None:
    """Register an application's parts, in the module that declares its workflows. Repeating it changes nothing.

    >>> extend("shop", migrate="shop.tables:migrate", routes=["shop.routes:router"])

    ``migrate``: a function ``(connection) -> None``, called by ``pipeline migrate`` after the engine's migrations.
    ``routes``: FastAPI routers, served beside ``/v1``; ``commands``: functions ``(app: typer.Typer) -> None`` that add
    commands to ``pipeline``; ``views``: pages of the dashboard, all in one folder, whose .js, .css and .svg files are
    served to everybody under ``/extensions/NAME/``; ``metrics``: functions ``(connection) -> Iterable[Metric]`` for
    ``/metrics``; ``outputs``: by workflow, a function ``(connection, job_id) -> value`` that reads what a job has
    stored, shown with the job. docs/howto/extend.md has an example of each.
    """
    _extensions[name] = Extension(
        name, migrate, tuple(routes), tuple(commands), tuple(views), tuple(metrics), dict(outputs or {})
    )


def extensions() -> list[Extension]:
    """All that are registered, in their order."""
    return list(_extensions.values())


def load(reference: str) -> Any:
    """The object that ``"package.module:attribute"`` names."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)
