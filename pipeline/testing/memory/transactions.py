"""Jobs that an application submits in a transaction of its own exist once that commits, in memory, too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pipeline.testing.memory.rows import Row


def follow(caller: Any, rows: list[Row], forget: Callable[[list[Row]], None]) -> None:
    """Let ``rows`` exist once the caller's transaction commits; ``forget`` them if it is rolled back.

    SQLAlchemy says when that is. Any other caller's jobs, and those of none, exist at once.
    """
    target, names = _events(caller)
    if target is None:
        return
    from sqlalchemy import event

    for row in rows:
        row.committed = False
    # The listeners of later transactions find nothing to do.
    left = list(rows)
    in_savepoint = _in_savepoint(target)

    def committed(*_: Any) -> None:
        if _in_savepoint(target):
            return
        for row in left:
            row.committed = True
        left.clear()

    def rolled_back(*_: Any) -> None:
        if _in_savepoint(target) and not in_savepoint:
            return
        gone = list(left)
        left.clear()
        forget(gone)

    event.listen(target, names[0], committed)
    event.listen(target, names[1], rolled_back)


def _in_savepoint(target: Any) -> bool:
    return bool(target.in_nested_transaction())


def _events(caller: Any) -> tuple[Any, tuple[str, str]]:
    """What tells of the caller's transaction, and how it calls its end. None: nobody does."""
    alchemy = sys.modules.get("sqlalchemy")
    orm = sys.modules.get("sqlalchemy.orm")
    caller = getattr(caller, "sync_session", getattr(caller, "sync_connection", caller))
    if orm is not None and isinstance(caller, orm.scoped_session):
        caller = caller()
    if orm is not None and isinstance(caller, orm.Session):
        return caller, ("after_commit", "after_rollback")
    if alchemy is not None and isinstance(caller, alchemy.Connection):
        if not caller.in_transaction():
            # As a statement of ours would have done.
            caller.begin()
        return caller, ("commit", "rollback")
    return None, ("", "")
