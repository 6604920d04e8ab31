"""Whose a key is, in memory: as in keys.sql."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pipeline.declare.states import FINAL, Status
from pipeline.testing.memory.rows import Row


class Keys:
    """A key belongs to one job of its workflow at a time: until a moment, or (None) until the job has ended."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str], tuple[Row, datetime | None]] = {}

    def holder(self, workflow: str, key: str, now: datetime) -> Row | None:
        """The job that keeps it from others."""
        row, until = self._keys.get((workflow, key), (None, None))
        held = row is not None and (row.status not in FINAL if until is None else until > now)
        return row if held else None

    def give(self, row: Row, until: datetime | None) -> None:
        if row.key is not None:
            self._keys[row.workflow.name, row.key] = row, until

    def take_again(self, row: Row, now: datetime) -> bool:
        """Whether a failed job may start again: not while another one that has not ended has its key."""
        if row.key is None or (row.workflow.name, row.key) not in self._keys:
            return True
        _, until = self._keys[row.workflow.name, row.key]
        if until is not None:
            return True
        if self.holder(row.workflow.name, row.key, now) is not None:
            return False
        self.give(row, None)
        return True

    def forget(self, jobs: set[UUID]) -> None:
        """They have never been."""
        self._keys = {key: held for key, held in self._keys.items() if held[0].id not in jobs}


def is_unsent(row: Row) -> bool:
    """Whether it waits and has never begun, so that another body can take its place."""
    return row.status is Status.PENDING and row.fence == 0
