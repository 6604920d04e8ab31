"""Schedules that are made at run time, and what can be done with all of them; inside the caller's own transaction."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, overload
from uuid import UUID

from pipeline.declare.errors import BadInput
from pipeline.declare.schedules.schedule import Overlap, ScheduleSpec
from pipeline.journey.submit import encode_body
from pipeline.store.gateway import schedules as stored
from pipeline.store.gateway.callers import run
from pipeline.store.gateway.schedules import Schedule

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from pipeline.journey.submit import Body
    from pipeline.store.gateway.callers import AsyncCaller, Caller, SyncCaller

    class Options(TypedDict, total=False):
        """What ``schedule`` takes, for type checkers; it explains and spells them out."""

        every: timedelta | None
        timezone: str | None
        body: Body | None
        overlap: Overlap
        catch_up: int | timedelta
        priority: int
        tags: Sequence[str]


MOST = 1000


@overload
def schedule(
    caller: SyncCaller | None, workflow: str, name: str, cron: str | None = None, **options: Unpack[Options]
) -> None: ...


@overload
def schedule(
    caller: AsyncCaller, workflow: str, name: str, cron: str | None = None, **options: Unpack[Options]
) -> Coroutine[Any, Any, None]: ...


def schedule(
    caller: Caller,
    workflow: str,
    name: str,
    cron: str | None = None,
    *,
    every: timedelta | None = None,
    timezone: str | None = None,
    body: Body | None = None,
    overlap: Overlap = "allow",
    catch_up: int | timedelta = 1,
    priority: int = 0,
    tags: Sequence[str] = (),
) -> Coroutine[Any, Any, None] | None:
    """Add a schedule of a workflow, or change the one of that name: each of its moments gets one job.

    >>> schedule(None, "orders", "customer-17", "0 7 * * 1", timezone="Europe/Paris", body={"customer": 17})

    ``cron``: minute, hour, day, month and weekday on the clocks of ``timezone`` (default UTC); or ``@hourly``,
    ``@daily``, ``@weekly``, ``@monthly``, ``@yearly``. ``every``: an interval of whole seconds instead.
    ``overlap``, while the job of an earlier moment has not ended: ``"allow"`` the new one, ``"skip"`` it, ``"queue"``
    it until then, or ``"cancel"`` the old job.
    ``catch_up``: how many moments, or how old ones, are made up after a time in which nobody could submit their jobs
    (default: the latest one). ``priority`` and ``tags`` are those of its jobs, which also have the tag
    ``schedule:<name>``.
    """
    spec = ScheduleSpec(name, cron, every, timezone, encode_body(workflow, body), overlap, catch_up, priority, tags)
    return run(caller, stored.schedule(workflow, spec))


@overload
def unschedule(caller: SyncCaller | None, workflow: str, name: str) -> bool: ...


@overload
def unschedule(caller: AsyncCaller, workflow: str, name: str) -> Coroutine[Any, Any, bool]: ...


def unschedule(caller: Caller, workflow: str, name: str) -> bool | Coroutine[Any, Any, bool]:
    """Remove a schedule that was made at run time; its jobs stay. False if there is none.

    >>> unschedule(None, "orders", "of-nobody")
    False
    """
    return run(caller, stored.unschedule(workflow, name))


@overload
def pause_schedule(caller: SyncCaller | None, workflow: str, name: str) -> bool: ...


@overload
def pause_schedule(caller: AsyncCaller, workflow: str, name: str) -> Coroutine[Any, Any, bool]: ...


def pause_schedule(caller: Caller, workflow: str, name: str) -> bool | Coroutine[Any, Any, bool]:
    """Give its moments no jobs until it is resumed; they are not made up then. False if it is paused already.

    >>> schedule(None, "orders", "nightly", "@daily")
    >>> pause_schedule(None, "orders", "nightly"), pause_schedule(None, "orders", "nightly")
    (True, False)
    """
    return run(caller, stored.pause(workflow, name))


@overload
def resume_schedule(caller: SyncCaller | None, workflow: str, name: str) -> bool: ...


@overload
def resume_schedule(caller: AsyncCaller, workflow: str, name: str) -> Coroutine[Any, Any, bool]: ...


def resume_schedule(caller: Caller, workflow: str, name: str) -> bool | Coroutine[Any, Any, bool]:
    """End its pause: moments count from now on. False if it was not paused.

    >>> schedule(None, "orders", "nightly", "@daily")
    >>> resume_schedule(None, "orders", "nightly")
    False
    """
    return run(caller, stored.resume(workflow, name))


@overload
def run_schedule(caller: SyncCaller | None, workflow: str, name: str) -> UUID: ...


@overload
def run_schedule(caller: AsyncCaller, workflow: str, name: str) -> Coroutine[Any, Any, UUID]: ...


def run_schedule(caller: Caller, workflow: str, name: str) -> UUID | Coroutine[Any, Any, UUID]:
    """Submit a job of the schedule now, beside those of its moments. It may overlap with others.

    >>> schedule(None, "orders", "nightly", "@daily")
    >>> job(run_schedule(None, "orders", "nightly")).status().state
    <Status.PENDING: 'pending'>
    """
    return run(caller, stored.run_now(workflow, name))


@overload
def backfill(caller: SyncCaller | None, workflow: str, name: str, first: datetime, last: datetime) -> None: ...


@overload
def backfill(
    caller: AsyncCaller, workflow: str, name: str, first: datetime, last: datetime
) -> Coroutine[Any, Any, None]: ...


def backfill(
    caller: Caller, workflow: str, name: str, first: datetime, last: datetime
) -> Coroutine[Any, Any, None] | None:
    """Give the moments from ``first`` to ``last``, both included, a job each, unless they have one.

    >>> schedule(None, "orders", "nightly", "@daily")
    >>> backfill(None, "orders", "nightly", datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 8, tzinfo=UTC))

    The leader of maintenance does so, a hundred at a time; one after another where jobs may not overlap.
    """
    if first.tzinfo is None or last.tzinfo is None:
        raise BadInput("a backfill needs moments with a time zone")
    return run(caller, stored.backfill(workflow, name, first, last))


@overload
def schedules(
    caller: SyncCaller | None = None,
    workflow: str | None = None,
    name: str | None = None,
    *,
    after: tuple[str, str] | None = None,
    most: int = MOST,
) -> list[Schedule]: ...


@overload
def schedules(
    caller: AsyncCaller,
    workflow: str | None = None,
    name: str | None = None,
    *,
    after: tuple[str, str] | None = None,
    most: int = MOST,
) -> Coroutine[Any, Any, list[Schedule]]: ...


def schedules(
    caller: Caller = None,
    workflow: str | None = None,
    name: str | None = None,
    *,
    after: tuple[str, str] | None = None,
    most: int = MOST,
) -> list[Schedule] | Coroutine[Any, Any, list[Schedule]]:
    """Schedules, and how they are, in the order of their names; of one workflow or of all.

    >>> schedule(None, "orders", "nightly", "@daily")
    >>> [one.name for one in schedules(None, "orders")]
    ['nightly']

    At most ``most``; the next ones come ``after`` the workflow and the name of the last.
    """
    return run(caller, stored.listed(workflow, name, after, most))
