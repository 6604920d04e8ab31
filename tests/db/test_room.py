"""pipeline.capacity and pipeline.send_credits: how much may be in the broker."""

from __future__ import annotations

import pytest

from tests.db import steps
from tests.db.steps import Db


def room(db: Db, queue: str) -> int:
    return int(steps.one(db, "SELECT pipeline.capacity(ph) FROM pipeline.phases ph WHERE queue = %s", queue))


def send_credits(db: Db, *queues: str) -> dict[str, int]:
    return {
        row["queue"]: row["hand_overs"]
        for row in steps.rows(db, "SELECT * FROM pipeline.send_credits(%s)", list(queues))
    }


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
    database.execute("UPDATE pipeline.phases SET queue_limit = 2, pool = 2 WHERE queue = 'single.act'")
    assert room(database, "single.act") <= 0
    steps.submit(database)
    assert steps.admit(database) == []


def test_living_workers_share_the_room_of_a_queue_without_a_pool(database: Db) -> None:
    """A queue with a pool or a throttle send_credits nothing: there each hand-over looks for itself."""
    for name in ("w1", "w2"):
        steps.sign_on(database, name, alive=False)
    steps.sign_on(database, "w3", alive=False)
    database.execute("UPDATE pipeline.workers SET stopped_at = now() WHERE id = 'w3'")
    assert send_credits(database, "small.queue", "pooled.narrow", "paced.slowly", "nowhere") == {"small.queue": 2}


def test_nobody_is_granted_room_while_others_wait_at_the_gate(database: Db) -> None:
    """So that nobody overtakes them; timed waits do not count."""
    steps.submit(database, "triple", due=steps.FUTURE)
    assert send_credits(database, "triple.first") == {"triple.first": 1000}
    steps.submit(database, "triple")
    assert send_credits(database, "triple.first") == {"triple.first": 0}
