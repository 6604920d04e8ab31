"""Batches and children in memory: as in batch.sql and children.sql."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from pipeline.declare.errors import BadInput
from pipeline.declare.job import PLAIN, decode
from pipeline.declare.states import FINAL, Status
from pipeline.declare.waits.next import Policy
from pipeline.testing.memory.clock import Clock
from pipeline.testing.memory.rows import Refused, Row

if TYPE_CHECKING:
    from pipeline.declare.waits.next import Children

DEEPEST, MOST = 10, 100_000


@dataclass(eq=False)
class Batch:
    """A fan-out: complete when it is sealed and all its jobs are final. ``parent`` waits for that, if there is one.

    ``answered``: the parent need not wait any longer.
    """

    id: UUID
    then: str | None = None
    body: str = "{}"
    parent: Row | None = None
    policy: Policy = "best_effort"
    depth: int = 0
    jobs: list[Row] = field(default_factory=list)
    ended: int = 0
    failed: int = 0
    sealed: bool = False
    answered: bool = False
    complete: bool = False

    @property
    def enough(self) -> bool:
        """Whether the parent need not wait any longer."""
        if self.ended == len(self.jobs):
            return True
        return (self.policy == "all" and self.failed > 0) or (self.policy == "any" and self.ended > self.failed)

    def told(self) -> dict[str, Any]:
        """What the parent gets as the result of the phase that waited."""
        told = {"batch": str(self.id), "total": len(self.jobs), "policy": self.policy, "failed": self.failed}
        if self.policy == "all" and self.failed:
            child = next(row for row in self.jobs if row.status in (Status.FAILED, Status.CANCELLED))
            told |= {"child": str(child.id), "error": child.error}
        return told


class Batches:
    """``submit`` a job of a workflow when a batch is complete that says so."""

    def __init__(self, clock: Clock, submit: Callable[[str, str], object]) -> None:
        self._clock = clock
        self._submit = submit
        self._batches: dict[UUID, Batch] = {}

    def open(self, batch: Batch) -> None:
        self._batches[batch.id] = batch

    def joinable(self, batch: UUID) -> Batch:
        """BadInput if no more jobs can join it."""
        found = self._batches.get(batch)
        if found is None or found.sealed:
            raise BadInput(f"batch {batch} is sealed or unknown: open a new batch for further jobs")
        return found

    def seal(self, batch: UUID) -> None:
        if batch in self._batches:
            self._batches[batch].sealed = True
            self._finish(self._batches[batch])

    def forget(self, row: Row) -> None:
        """It has never been."""
        if row.batch is not None:
            self._batches[row.batch].jobs.remove(row)

    def of_children(self, parent: Row, children: Children[Any]) -> Batch:
        """A batch for the children of an attempt."""
        depth = 1 if parent.batch is None else self._batches[parent.batch].depth + 1
        if depth > DEEPEST:
            raise Refused(f"job {parent.id} is {DEEPEST} levels deep: children of children end there")
        if len(children.bodies) > MOST:
            raise Refused(f"job {parent.id} has more than {MOST} children")
        batch = Batch(children.batch, parent=parent, policy=children.policy, depth=depth)
        self.open(batch)
        return batch

    def ended(self, row: Row) -> None:
        """A job counts once in its life: a replayed child does not count again. A cancel reaches the children."""
        if row.batch is not None and not row.counted:
            row.counted = True
            batch = self._batches[row.batch]
            batch.ended += 1
            batch.failed += row.status is not Status.SUCCEEDED
            self._finish(batch)
        if row.status is Status.CANCELLED:
            for batch in [one for one in self._batches.values() if one.parent is row]:
                _cancel(batch, "the job that waited for it was cancelled")

    def ends(self, batch: UUID, after: UUID | None, skip: int, most: int) -> Sequence[Mapping[str, Any]]:
        """How the children ended, in the order of their bodies."""
        jobs = self._batches[batch].jobs
        first = skip if after is None else [row.id for row in jobs].index(after) + 1 + skip
        return [_end(row) for row in jobs[first : first + most]]

    def _finish(self, batch: Batch) -> None:
        if not batch.sealed or batch.complete:
            return
        if batch.parent is not None and not batch.answered and batch.enough:
            batch.answered = True
            result = PLAIN.encode(batch.told()).decode()
            batch.parent.end_wait(f"children:{batch.id}", result, "children", self._clock.now())
            _cancel(batch, "the job that waited for it has what it needs")
        if batch.ended < len(batch.jobs) or batch.complete:
            return
        batch.complete = True
        if batch.then is not None:
            told = {"id": str(batch.id), "total": len(batch.jobs), "failed": batch.failed}
            self._submit(batch.then, PLAIN.encode({**orjson.loads(batch.body), "batch": told}).decode())


def _cancel(batch: Batch, reason: str) -> None:
    for row in batch.jobs:
        if row.status not in FINAL:
            row.cancel(reason)


def _end(row: Row) -> Mapping[str, Any]:
    result = row.results.get(row.spec.name) if row.status is Status.SUCCEEDED else None
    return {"id": row.id, "status": row.status, "error": row.error, "result": decode(result or "null")}
