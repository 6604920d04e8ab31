"""Schedules: the leader of maintenance submits the jobs of their moments. Every time that counts is PostgreSQL's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import accumulate
from math import inf
from time import monotonic

import psycopg

from pipeline.declare.errors import BadInput
from pipeline.declare.schedules.moments import Moments
from pipeline.declare.schedules.schedule import moments_of, to_backfill, to_submit
from pipeline.observe import logs
from pipeline.observe.instruments import count
from pipeline.store.engine import Wire
from pipeline.store.gateway import schedules
from pipeline.store.gateway.schedules import Due, Fired, Wish

log = logs.get("pipeline.schedules")
# Schedules and jobs of one transaction, about. What reclaim has to do comes between two of them.
MOST = 200
MOST_JOBS = 500
# A row that somebody else holds is asked for again.
ASK_AGAIN = 0.5
# A schedule that cannot be moved on is left alone for so long.
REST = 30.0
# Moments that lie closer together are looked at together.
TOGETHER = 0.05


class Schedules:
    """One for each connection of the leader."""

    def __init__(self) -> None:
        self._left_alone: dict[int, float] = {}

    def look(self, connection: Wire) -> float:
        """Submit what is due, and move it on in the same transaction. The seconds until the next look.

        Each step names the revision of its schedule that it was worked out from. Two leaders, or one that died before
        it heard of its commit, change nothing for the second time.
        """
        self._left_alone = {one: until for one, until in self._left_alone.items() if until > monotonic()}
        due, seconds = schedules.due(connection, MOST, list(self._left_alone))
        if due:
            self._fire(connection, due)
            return 0.0
        pauses = [max(TOGETHER, seconds)] if seconds is not None else []
        pauses += [max(TOGETHER, until - monotonic()) for until in self._left_alone.values()]
        return min(pauses, default=inf)

    def _fire(self, connection: Wire, due: Sequence[Due]) -> None:
        wishes = _bounded([_wish(one) for one in due])
        try:
            fired = {one.id: one for one in schedules.fire(connection, wishes)}
        except psycopg.Error:
            if connection.closed or connection.broken:
                raise
            fired = self._one_by_one(connection, wishes)
        for one, wish in zip(due, wishes, strict=False):
            if wish.id in fired:
                _say(one, wish, fired[wish.id])
            else:
                self._left_alone.setdefault(wish.id, monotonic() + ASK_AGAIN)

    def _one_by_one(self, connection: Wire, wishes: Sequence[Wish]) -> dict[int, Fired]:
        """One that cannot be moved on, for whatever reason, keeps no other waiting."""
        fired = {}
        for wish in wishes:
            try:
                fired.update({one.id: one for one in schedules.fire(connection, [wish])})
            except psycopg.Error:
                if connection.closed or connection.broken:
                    raise
                log.exception("a schedule cannot be moved on; it is tried again", schedule=wish.id)
                self._left_alone[wish.id] = monotonic() + REST
        return fired


def _bounded(wishes: Sequence[Wish]) -> Sequence[Wish]:
    """The first of them; the others are still due at the next look."""
    jobs = accumulate(len(wish.moments) for wish in wishes)
    return [wish for wish, until in zip(wishes, jobs, strict=True) if until <= MOST_JOBS]


def _wish(one: Due) -> Wish:
    """The jobs of the moments that have come come first, then those of a backfill."""
    assert one.id is not None
    try:
        every = None if one.every is None else timedelta(seconds=one.every)
        moments = moments_of(one.cron, every, one.timezone if one.cron else None)
    except BadInput as error:
        return Wish(one.id, one.revision, one.next_at, [], None, None, problem=str(error))
    if one.paused or (one.planned and (one.next_at is None or one.next_at > one.at)):
        return _backfill(one, moments)
    return _moments(one, moments)


def _moments(one: Due, moments: Moments) -> Wish:
    assert one.id is not None and one.next_at is not None
    first = one.next_at if one.planned else moments.after(one.next_at)
    catch_up = one.catch_up if one.catch_up is not None else timedelta(seconds=one.catch_up_for or 0)
    found, following = (
        ([], first)
        if first is None or first > one.at
        else to_submit(moments, first, one.at, overlap=one.overlap, catch_up=catch_up)
    )
    return Wish(one.id, one.revision, one.next_at, found, following, one.backfill_at)


def _backfill(one: Due, moments: Moments) -> Wish:
    assert one.id is not None
    if one.backfill_at is None or one.backfill_until is None:
        # It waited, and was paused or changed since.
        return Wish(one.id, one.revision, one.next_at, [], one.next_at, None)
    found, following = to_backfill(moments, one.backfill_at, one.backfill_until, one.overlap)
    return Wish(one.id, one.revision, one.next_at, found, one.next_at, following, fills=True)


def _say(one: Due, wish: Wish, fired: Fired) -> None:
    count("schedules.submitted", fired.submitted)
    if wish.problem or fired.verdict == "unknown":
        log.warning("schedule without jobs", schedule=one.name, problem=wish.problem or "its workflow has no phase")
    elif fired.verdict == "skipped":
        count("schedules.skipped")
        log.info("moment skipped: an earlier job has not ended", schedule=one.name, moment=str(wish.moments[-1]))
    elif one.planned and wish.moments and one.next_at and wish.moments[0] > one.next_at and not wish.fills:
        log.warning("moments were missed and are not made up", schedule=one.name, since=str(one.next_at))
