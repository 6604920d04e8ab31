"""What is done with all jobs that match: a bounded number a transaction, so that nobody waits for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from pipeline.declare.errors import BadInput
from pipeline.declare.states import Status
from pipeline.store.control import actions as control
from pipeline.store.control.actions import Actor
from pipeline.store.gateway import client
from pipeline.store.gateway.client import Where

# Jobs a transaction, and jobs that are counted.
AT_ONCE = 1000
MOST_COUNTED = 10_000
Act = Callable[[Connection, list[UUID]], int]


class Part(NamedTuple):
    """So many were done; ``next`` is where the next part begins, None after the last."""

    jobs: int
    next: UUID | None


def to_cancel(where: Where) -> Where:
    """Jobs that have not ended."""
    if where.status in (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED):
        raise BadInput(f"jobs that are {where.status} have ended, and cannot be cancelled")
    return where if where.status is not None else replace(where, status="unfinished")


def to_replay(where: Where) -> Where:
    """Jobs that failed, or those that were cancelled."""
    if where.status not in (None, Status.FAILED, Status.CANCELLED):
        raise BadInput(f"jobs that are {where.status} cannot be replayed: choose those that are failed or cancelled")
    return where if where.status is not None else replace(where, status=Status.FAILED)


def cancel(reason: str) -> Act:
    """Ends them, with the reason."""
    return lambda connection, ids: client.cancel_many(connection, ids, reason)


def replay(connection: Connection, ids: list[UUID]) -> int:
    """Starts them again, with fresh budgets."""
    return client.replay_many(connection, ids, None)


def noted(act: Act, actor: Actor, action: str, where: Where, reason: str | None) -> Act:
    """Who does it is written down with it, and which jobs they are."""

    def do(connection: Connection, ids: list[UUID]) -> int:
        done = act(connection, ids)
        detail = {"where": described(where)}
        control.record(connection, actor, action, reason=reason, jobs=done, ids=ids, detail=detail)
        return done

    return do


def described(where: Where) -> dict[str, str]:
    """The filter, as people write it."""
    named = {("id" if name == "prefix" else name): value for name, value in asdict(where).items() if value is not None}
    return {name: str(value) for name, value in named.items()}


def part(connection: Connection, where: Where, before: UUID | None, act: Act, limit: int = AT_ONCE) -> Part:
    """Do it with the newest jobs that match and are older than ``before``."""
    ids, following = client.find(connection, where, before, limit)
    # Whoever was submitted first goes first.
    return Part(act(connection, ids[::-1]) if ids else 0, following)


def count(connection: Connection, where: Where, before: UUID | None = None) -> Part:
    """How many there are; ``next`` is not None if there may be more than were looked at."""
    ids, following = client.find(connection, where, before, MOST_COUNTED)
    return Part(len(ids), following)
