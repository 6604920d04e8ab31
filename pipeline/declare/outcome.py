"""What a phase gives back when it succeeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.declare.errors import Misuse

if TYPE_CHECKING:
    from sqlalchemy import Connection

Write = Callable[["Connection"], None]


@dataclass(frozen=True)
class Done:
    """Success. ``result`` is small and goes to later phases; ``write`` runs in the transaction that ends the phase.

    ``write`` gets an SQLAlchemy connection and must only write: what it does commits together with the
    job's transition and the hand-over to the next phase, or not at all.
    """

    result: Mapping[str, Any] | None = None
    write: Write | None = None


def as_done(value: object) -> Done:
    """What a phase function returned, as a ``Done``: nothing, a mapping, a writing function, or a Done itself."""
    if value is None:
        return Done()
    if isinstance(value, Done):
        return value
    if isinstance(value, Mapping):
        return Done(result=value)
    if callable(value):
        return Done(write=value)
    raise Misuse(
        f"a phase returns None, a dict, a function that writes, or Done(...); this one returned {type(value).__name__}"
    )
