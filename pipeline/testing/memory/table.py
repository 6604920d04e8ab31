"""What stands in for PostgreSQL in memory: the jobs, the batches, and the statements that applications call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import count, islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pipeline.declare.errors import BadInput
from pipeline.declare.registry import DeclaredWorkflow, workflows
from pipeline.declare.states import FINAL, Status
from pipeline.declare.waits.next import LONGEST_EVENT
from pipeline.store.gateway import client
from pipeline.store.gateway.callers import Call
from pipeline.testing.memory.batches import Batch, Batches
from pipeline.testing.memory.clock import Clock
from pipeline.testing.memory.hooks import hooks_of
from pipeline.testing.memory.keys import Keys, is_unsent
from pipeline.testing.memory.rows import Row, next_due
from pipeline.testing.memory.transactions import follow
from pipeline.testing.memory.turns import in_turn
from pipeline.testing.memory.wishes import Wish, read

if TYPE_CHECKING:
    from pipeline.declare.waits.next import Children


class Table:
    """Every way to submit, cancel or replay ends here, as it would end in a function of PostgreSQL."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._numbers = count(1)
        self.rows: dict[UUID, Row] = {}
        # Those that may have a turn; the final ones among them are dropped at the next look.
        self._unfinished: list[Row] = []
        self.batches = Batches(clock, self._call_back)
        self._keys = Keys()
        self._statements: dict[object, Callable[..., Iterator[Any]]] = {
            client.SUBMIT: self._submit,
            client.CANCEL: self._cancel,
            client.REPLAY: self._replay,
            client.SIGNAL: self._signal,
            client.OPEN_BATCH: self._open_batch,
            client.SEAL_BATCH: self._seal_batch,
        }

    def answer(self, caller: Any, call: Call[Any]) -> list[Any]:
        """The first column of the statement's rows. New jobs exist once the caller's transaction commits."""
        if call.statement not in self._statements:
            raise NotImplementedError(f"not in memory: {call.statement.text}")
        before = len(self.rows)
        answer = list(self._statements[call.statement](*call.values))
        # A dictionary keeps the order: the new ones are the last.
        if added := list(islice(reversed(self.rows.values()), len(self.rows) - before)):
            follow(caller, added, self._forget)
        return answer

    def order(self) -> int:
        """The last place in the queue."""
        return next(self._numbers)

    def find(self, job: UUID) -> Row | None:
        """The job, if it is there for everybody."""
        row = self.rows.get(job)
        return row if row is not None and row.committed else None

    def next_due(self, paused: Mapping[str, datetime], now: datetime) -> Row | None:
        """Whose turn it is now. What has expired by now has no turn."""
        self._unfinished = [row for row in self._unfinished if row.status not in FINAL]
        rows = [row for row in self._unfinished if row.committed]
        for row in rows:
            row.expire(now)
        return next_due(in_turn(row for row in rows if row.status not in FINAL), paused, now)

    # ---- the statements, with the values that PostgreSQL would get

    def _submit(self, *values: str | None) -> Iterator[UUID]:
        wish = read(values, self._clock.now())
        if not 0 <= wish.priority <= 9:
            raise BadInput(f"priority {wish.priority} is outside 0 … 9: 0 is the default, 9 goes first")
        workflow = _declared(wish.workflow)
        if wish.batch is not None:
            self.batches.joinable(UUID(wish.batch))
        for body, key in zip(wish.bodies, wish.keys, strict=True):
            yield self._take(workflow, body, key, wish).id

    def _take(self, workflow: DeclaredWorkflow, body: str, key: str | None, wish: Wish) -> Row:
        """A new job, or the one that has the key."""
        known = None if key is None else self._keys.holder(workflow.name, key, self._clock.now())
        if known is not None and not wish.replaces:
            return known
        if known is not None and is_unsent(known):
            known.replace(body, wish.priority, wish.due, tags=wish.tags, expires=wish.expires)
            return known
        return self._add(workflow, body, key, wish)

    def _add(self, workflow: DeclaredWorkflow, body: str, key: str | None, wish: Wish) -> Row:
        if not body.startswith("{"):
            raise BadInput('a body is not a JSON object: send an object such as {"url": "https://example.org"}')
        job = _new_id()
        trace = (wish.traceparent or f"00-{job.hex}-{job.hex[16:]}-01").split("-")
        row = Row(
            id=job,
            workflow=workflow,
            body=body,
            priority=wish.priority,
            order=self.order(),
            due=wish.due,
            wait_reason=None if wish.due is None else "scheduled",
            key=key,
            tags=wish.tags,
            expires=wish.expires,
            trace_id=trace[1],
            span_id=trace[2],
            batch=None if wish.batch is None else UUID(wish.batch),
            ended=self._ended,
        )
        if row.batch is not None:
            self.batches.joinable(row.batch).jobs.append(row)
        self.rows[job] = row
        self._unfinished.append(row)
        self._keys.give(row, wish.kept)
        return row

    def _cancel(self, job: str, reason: str) -> Iterator[bool]:
        row = self.rows.get(UUID(job))
        if row is None or row.status in FINAL:
            yield False
            return
        row.cancel(reason)
        yield True

    def _replay(self, job: str, body: str | None) -> Iterator[bool]:
        row = self.rows.get(UUID(job))
        if (
            row is None
            or row.status not in (Status.FAILED, Status.CANCELLED)
            or not self._keys.take_again(row, self._clock.now())
        ):
            yield False
            return
        if body is not None:
            row.body = body
        row.replay(self.order())
        if row not in self._unfinished:
            self._unfinished.append(row)
        yield True

    def _signal(self, job: str, event: str, body: str) -> Iterator[str]:
        row = self.rows.get(UUID(job))
        if not 1 <= len(event) <= LONGEST_EVENT:
            raise BadInput(f"the name of an event has 1 to {LONGEST_EVENT} characters")
        yield "unknown_job" if row is None else row.tell(event, body, self._clock.now())

    def _open_batch(self, then: str | None, body: str) -> Iterator[UUID]:
        if then is not None:
            _declared(then)
        batch = _new_id()
        self.batches.open(Batch(batch, then, body))
        yield batch

    def _seal_batch(self, batch: str) -> Iterator[None]:
        self.batches.seal(UUID(batch))
        yield None

    # ---- what the ends of phases and of jobs submit

    def spawn(self, parent: Row, children: Children[Any]) -> None:
        """Children of an attempt, which begins to wait for them in the same step."""
        workflow = _declared(children.workflow)
        batch = self.batches.of_children(parent, children)
        wish = Wish(
            children.workflow,
            [],
            priority=children.priority,
            batch=str(batch.id),
            traceparent=children.traceparent,
        )
        for body in children.bodies:
            self._add(workflow, body, None, wish)

    def begin_waiting(self, row: Row) -> None:
        """What is there already: signals that came before the wait, and children that need no waiting."""
        if row.waits_for is not None and row.waits_for.startswith("children:"):
            self.batches.seal(UUID(row.waits_for.removeprefix("children:")))
        else:
            row.take_signal(self._clock.now())

    def _ended(self, row: Row) -> None:
        for wish in list(hooks_of(row, self._clock.now())):
            self._add(_declared(wish.workflow), wish.bodies[0], None, wish)
        self.batches.ended(row)

    def _call_back(self, workflow: str, body: str) -> None:
        self._add(_declared(workflow), body, None, Wish(workflow, [body]))

    def _forget(self, rows: list[Row]) -> None:
        """The transaction that submitted them was rolled back: they have never been."""
        self._unfinished = [row for row in self._unfinished if row not in rows]
        for row in rows:
            del self.rows[row.id]
            self.batches.forget(row)
        self._keys.forget({row.id for row in rows})


def _declared(workflow: str) -> DeclaredWorkflow:
    known = workflows()
    if workflow not in known or not known[workflow].phases:
        raise BadInput(f"unknown workflow '{workflow}': known workflows: {', '.join(sorted(known)) or 'none'}")
    return known[workflow]


def _new_id() -> UUID:
    return UUID(bytes=os.urandom(16), version=4)
