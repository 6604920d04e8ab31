"""pipeline.capacity: how much may be in the broker."""

from __future__ import annotations

import pytest

from tests.db import steps
from tests.db.steps import Db


def room(db: Db, queue: str) -> int:
    return int(steps.one(db, "SELECT pipeline.capacity(ph) FROM pipeline.phases ph WHERE queue = %s", queue))


def test_an_empty_queue_has_room_for_its_limit_or_its_pool(database: Db) -> None:
    """Whichever is smaller."""
    assert (room(database, "single.act"), room(database, "small.queue"), room(database, "pooled.narrow")) == (
        1000,
        5,
        3,
    )


def test_sent_messages_and_running_jobs_take_room(database: Db) -> None:
    """Both are out; nobody looks closer while there is room for more."""
    for workflow in ("pooled", "small"):
        steps.held(database, workflow)
        steps.submit(database, workflow)
    steps.admit(database)
    assert (room(database, "pooled.narrow"), room(database, "small.queue")) == (1, 3)


def test_running_jobs_do_not_fill_a_queue(database: Db) -> None:
    """However many run: the limit is on those that wait there. A pool is full with those that run."""
    for _ in range(5):
        steps.held(database, "small")
    assert room(database, "small.queue") == 5
    steps.submit(database, "small")
    steps.admit(database)
    assert room(database, "small.queue") == 4
    for _ in range(3):
        steps.held(database, "pooled")
    assert room(database, "pooled.narrow") == 0


@pytest.mark.parametrize("sent", [2, 3, 5, 7])
def test_a_lowered_limit_leaves_no_room_and_takes_nothing_back(database: Db, sent: int) -> None:
    """Room may be below zero; nobody is sent and nobody is lost."""
    for _ in range(sent):
        steps.submit(database)
    steps.admit(database)
    database.execute("UPDATE pipeline.phases SET queue_limit = 2 WHERE queue = 'single.act'")
    assert room(database, "single.act") <= 0
    steps.submit(database)
    assert steps.admit(database) == []
