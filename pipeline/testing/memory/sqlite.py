"""The application's database of a run in memory: SQLite, in memory, too."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Engine, StaticPool, create_engine, event


def sqlite() -> Engine:
    """One database for all connections of the engine. UUIDs in plain statements are text, as PostgreSQL shows them."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    event.listen(engine, "before_cursor_execute", _as_text, retval=True)
    return engine


def _as_text(_: Any, __: Any, statement: str, values: Any, ___: Any, many: bool) -> tuple[str, Any]:
    return statement, [_plain(one) for one in values] if many else _plain(values)


def _plain(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _text(value) for name, value in values.items()}
    return tuple(_text(value) for value in values)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value
