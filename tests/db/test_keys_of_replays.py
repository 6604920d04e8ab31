"""A failed job and its key: a replay asks for it back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from tests.db import steps, together
from tests.db.conftest import Connect
from tests.db.steps import Db

HOUR = "1 hour"


def fail(db: Db, job: UUID) -> None:
    steps.fail(db, steps.hold(db, job))


def test_a_failed_job_is_not_replayed_while_another_one_has_its_key(database: Db) -> None:
    """One unfinished job a key holds for replays, too: one by one, in a group and by a dead letter."""
    job = steps.submit(database, key="k", unique="open")
    fail(database, job)
    fresh = steps.submit(database, key="k", unique="open")
    with steps.nothing_changes(database):
        assert steps.replay(database, job) is False
        assert steps.replay(database, job, steps.job(database, job)["send"]) is False
        assert steps.rows(database, "SELECT pipeline.replay_many(%s)", [job]) == []
    steps.complete(database, steps.hold(database, fresh))
    assert steps.replay(database, job) is True
    assert steps.submit(database, key="k", unique="open") == job


def test_a_replayed_job_has_its_key_again(database: Db) -> None:
    """Nobody took it meanwhile."""
    job = steps.submit(database, key="k", unique="open")
    fail(database, job)
    assert steps.replay(database, job) is True
    assert steps.submit(database, key="k", unique="open") == job


@pytest.mark.parametrize("unique", [None, HOUR])
def test_a_key_that_is_kept_for_a_time_or_for_good_stops_no_replay(database: Db, unique: str | None) -> None:
    """It does not say that there is one unfinished job."""
    job = steps.submit(database, key="k", unique=unique)
    fail(database, job)
    assert steps.replay(database, job) is True
    assert steps.submit(database, key="k", unique=unique) == job


def test_replay_and_submit_at_the_same_moment_leave_one_unfinished_job(connect: Connect, database: Db) -> None:
    """Either the job is replayed and is the answer, or the new one has the key."""
    one, two = connect(), connect()
    for n in range(10):
        job = steps.submit(database, key=f"k{n}", unique="open")
        fail(database, job)
        works: list[Callable[[], Any]] = [
            partial(steps.replay, one, job),
            partial(steps.submit, two, key=f"k{n}", unique="open"),
        ]
        replayed, answer = together.at_once(works)
        assert (answer == job) if replayed else (answer != job)
        unfinished = "SELECT count(*) FROM pipeline.jobs WHERE idempotency_key = %s AND completed_at IS NULL"
        assert steps.one(database, unfinished, f"k{n}") == 1


def test_a_replay_does_not_wait_for_a_submit_that_is_under_way(database: Db, connect: Connect) -> None:
    """A worker may ask for it, with a message in hand."""
    job, other = steps.submit(database, key="k", unique="open"), connect()
    fail(database, job)
    with other.transaction(force_rollback=True):
        steps.submit(other, key="k", unique="open")
        assert steps.replay(database, job) is False
    assert steps.replay(database, job) is True
