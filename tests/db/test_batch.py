"""pipeline.open_batch, seal, count_children: fan-out and fan-in."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest

from tests.db import steps, together
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold


def children(db: Db, batch: UUID, count: int) -> list[UUID]:
    return [steps.submit(db, batch=batch) for _ in range(count)]


def callbacks(db: Db) -> list[steps.Row]:
    return steps.rows(db, "SELECT * FROM pipeline.jobs WHERE workflow = 'plain'")


def test_the_last_child_sends_the_callback_once(database: Db) -> None:
    """With the batch's id and counts beside the caller's body."""
    batch = steps.open_batch(database, "plain", {"who": "me"})
    one, two = children(database, batch, 2)
    steps.seal(database, batch)
    steps.complete(database, steps.hold(database, one))
    assert callbacks(database) == []
    steps.fail(database, steps.hold(database, two))
    [callback] = callbacks(database)
    assert callback["body"] == {"who": "me", "batch": {"id": str(batch), "total": 2, "failed": 1}}
    row = steps.batch(database, batch)
    assert (row["remaining"], row["failed"], row["callback_job"]) == (0, 1, callback["id"])
    assert row["completed_at"] is not None


def test_a_batch_is_not_complete_before_it_is_sealed(database: Db) -> None:
    """More children may come; sealing it afterwards sends the callback, sealing it twice does not."""
    batch = steps.open_batch(database, "plain")
    [child] = children(database, batch, 1)
    steps.complete(database, steps.hold(database, child))
    assert callbacks(database) == []
    steps.seal(database, batch)
    steps.seal(database, batch)
    assert len(callbacks(database)) == 1


def test_an_empty_batch_is_complete_when_it_is_sealed(database: Db) -> None:
    """A fan-out over nothing completes at once."""
    batch = steps.open_batch(database, "plain")
    steps.seal(database, batch)
    assert callbacks(database)[0]["body"]["batch"]["total"] == 0


def end_exhausted(db: Db, job_id: UUID) -> None:
    for _ in range(3):
        steps.retry(db, steps.hold(db, job_id))


def end_poisoned(db: Db, job_id: UUID) -> None:
    for _ in range(3):
        steps.crash(db, steps.hold(db, job_id))


def overdue(db: Db, job_id: UUID) -> UUID:
    db.execute("UPDATE pipeline.jobs SET expires_at = now() WHERE id = %s", (job_id,))
    return job_id


ENDS: dict[str, Callable[[Db, UUID], object]] = {
    "succeeded": lambda db, job_id: steps.complete(db, steps.hold(db, job_id)),
    "failed": lambda db, job_id: steps.fail(db, steps.hold(db, job_id)),
    "exhausted": end_exhausted,
    "poisoned": end_poisoned,
    "cancelled while it waits": steps.cancel,
    "cancelled while it runs": lambda db, job_id: steps.cancel(db, steps.hold(db, job_id).job),
    "undeliverable": lambda db, job_id: steps.undeliverable(db, job_id, 1),
    "expired": lambda db, job_id: steps.expire(db, overdue(db, job_id)),
}


@pytest.mark.parametrize("end", ENDS)
def test_every_way_to_end_counts(database: Db, end: str) -> None:
    """Rule 11: each final child decrements in its own transaction."""
    batch = steps.open_batch(database, "plain")
    [child] = children(database, batch, 1)
    steps.seal(database, batch)
    ENDS[end](database, child)
    row = steps.batch(database, batch)
    assert (row["remaining"], row["failed"]) == (0, int(end != "succeeded"))
    assert len(callbacks(database)) == 1


def test_a_replayed_child_does_not_count_again(database: Db) -> None:
    """The callback is never sent twice."""
    batch = steps.open_batch(database, "plain")
    one, two = children(database, batch, 2)
    steps.seal(database, batch)
    steps.fail(database, steps.hold(database, one))
    steps.replay(database, one)
    steps.complete(database, steps.hold(database, one))
    assert (steps.batch(database, batch)["remaining"], callbacks(database)) == (1, [])
    steps.complete(database, steps.hold(database, two))
    steps.replay(database, one)
    assert len(callbacks(database)) == 1


def test_a_hand_over_is_not_an_end(database: Db) -> None:
    """A child counts after its last phase."""
    batch = steps.open_batch(database)
    hold = steps.held(database, "triple", batch=batch)
    steps.complete(database, hold)
    assert steps.batch(database, batch)["remaining"] == 1


def test_children_that_end_at_once_send_one_callback(connect: Connect) -> None:
    """None waits for the batch; what could not be added up at once is the leader of maintenance's."""
    connections = [connect() for _ in range(4)]
    batch = steps.open_batch(connections[0], "plain")
    jobs = children(connections[0], batch, 4)
    steps.seal(connections[0], batch)
    holds = [steps.hold(connections[0], job_id) for job_id in jobs]
    together.at_once([lambda n=n: steps.complete(connections[n], holds[n]) for n in range(4)])  # type: ignore[misc]
    assert steps.one(connections[0], "SELECT pipeline.finish_batches()") is False
    assert steps.batch(connections[0], batch)["remaining"] == 0
    assert len(callbacks(connections[0])) == 1


def test_one_transaction_can_end_children_of_several_batches(database: Db) -> None:
    """Group commit: each batch is counted and called back."""
    batches = [steps.open_batch(database, "plain") for _ in range(3)]
    holds: list[Hold] = []
    for batch in batches:
        holds += [steps.hold(database, job_id) for job_id in children(database, batch, 2)]
        steps.seal(database, batch)
    database.execute(
        "SELECT * FROM pipeline.complete(1, %s::uuid[], %s::bigint[], NULL, NULL)",
        ([hold.job for hold in holds], [hold.fence for hold in holds]),
    )
    assert [steps.batch(database, batch)["remaining"] for batch in batches] == [0, 0, 0]
    assert len(callbacks(database)) == 3


def test_a_sealed_or_unknown_batch_takes_no_more_children(database: Db) -> None:
    """With the word that says what to do."""
    batch = steps.open_batch(database)
    steps.seal(database, batch)
    with steps.nothing_changes(database), pytest.raises(psycopg.Error, match="is sealed or unknown") as caught:
        steps.submit(database, batch=batch)
    assert (caught.value.sqlstate, caught.value.diag.message_hint) == ("PL003", "open a new batch for further jobs")


@pytest.mark.parametrize("body", [[1], "text", {"x": "y" * 65500}], ids=["list", "text", "too big"])
def test_a_callback_that_could_never_be_submitted_is_refused_at_once(database: Db, body: object) -> None:
    """Otherwise the last child's own step would fail, for ever."""
    with pytest.raises(psycopg.Error) as caught:
        steps.open_batch(database, "plain", body)
    assert caught.value.sqlstate in ("PL004", "PL005")


def test_a_callback_to_an_unknown_workflow_is_refused_at_once(database: Db) -> None:
    """With the known ones as a hint."""
    with pytest.raises(psycopg.Error, match="unknown workflow") as caught:
        steps.open_batch(database, "nowhere")
    assert caught.value.sqlstate == "PL001"
