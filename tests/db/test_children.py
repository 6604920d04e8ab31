"""Children: jobs that another one waits for (pipeline.spawn), and how their ends wake it, once."""

from __future__ import annotations

from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold
from tests.db.test_waits import phases, results, wait, waits


def spawn(db: Db, hold: Hold, children: int, policy: str = "best_effort", workflow: str = "single") -> UUID:
    """Children of the attempt, as its completion submits them."""
    batch = uuid4()
    bodies = [Jsonb({"n": n}) for n in range(children)]
    with db.transaction():
        db.execute(
            "SELECT pipeline.spawn(%s, %s, %s, %s, %s::jsonb[], 0, NULL)", (hold.job, batch, policy, workflow, bodies)
        )
        assert steps.complete(db, hold, following={"batch": str(batch)})["verdict"] == "handed_over"
    return batch


def children(db: Db, batch: UUID) -> list[UUID]:
    return [row["id"] for row in steps.rows(db, "SELECT id FROM pipeline.ends(%s, NULL, 0, 1000000)", batch)]


def end(db: Db, job: UUID, how: str = "complete") -> None:
    if how == "cancel":
        assert steps.cancel(db, job)
        return
    hold = steps.hold(db, job)
    if how == "fail":
        assert steps.fail(db, hold) == "failed"
    else:
        steps.complete(db, hold, {"of": str(job)})


def test_a_job_waits_for_all_its_children_and_gets_their_ends_in_order(database: Db) -> None:
    hold = steps.held(database, "triple")
    batch = spawn(database, hold, 20)
    found = children(database, batch)
    assert [steps.job(database, one)["body"]["n"] for one in found] == list(range(20))
    for place, one in enumerate(reversed(found)):
        assert waits(database, hold.job) == f"children:{batch}"
        end(database, one, ("complete", "fail", "cancel")[place % 3])
    assert waits(database, hold.job) is None
    told = {"batch": str(batch), "total": 20, "failed": 13, "policy": "best_effort"}
    assert results(database, hold.job) == {phases(database)[0]: told}
    ends = steps.rows(database, "SELECT status, result FROM pipeline.ends(%s, NULL, 0, 100)", batch)
    assert [row["status"] for row in reversed(ends)] == (["succeeded", "failed", "cancelled"] * 7)[:20]
    assert ends[-1]["result"] == {"of": str(found[-1])}
    assert [row["job_id"] for row in steps.admit(database)] == [hold.job]


def test_a_child_that_is_replayed_does_not_wake_its_parent_again(database: Db) -> None:
    hold = steps.held(database, "triple")
    [one] = children(database, spawn(database, hold, 1))
    end(database, one, "fail")
    parent = steps.hold(database, hold.job)
    assert steps.replay(database, one)
    end(database, one)
    assert steps.job(database, hold.job)["status"] == "running"
    assert steps.complete(database, parent)["verdict"] == "handed_over"


def test_a_job_without_children_does_not_wait(database: Db) -> None:
    hold = steps.held(database, "triple")
    spawn(database, hold, 0)
    assert [row["job_id"] for row in steps.admit(database)] == [hold.job]


def test_children_of_an_attempt_that_lost_its_job_never_existed(database: Db) -> None:
    hold = steps.held(database, "triple")
    steps.cancel(database, hold.job)
    with pytest.raises(AssertionError):
        spawn(database, hold, 3)
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs WHERE batch_id IS NOT NULL") == 0


def test_cancelling_a_job_cancels_its_children_and_theirs(database: Db) -> None:
    hold = steps.held(database, "triple")
    child, *rest = children(database, spawn(database, hold, 3, workflow="triple"))
    end(database, rest[-1], "cancel")
    grandchildren = children(database, spawn(database, steps.hold(database, child), 2))
    running = steps.hold(database, grandchildren[0])
    assert steps.cancel(database, hold.job)
    ended = [hold.job, child, *rest, *grandchildren]
    assert {steps.job(database, one)["status"] for one in ended} == {"cancelled"}
    assert steps.complete(database, running)["verdict"] == "lost"
    assert steps.one(database, "SELECT count(*) FROM pipeline.outbox") == 0
    assert steps.one(database, "SELECT count(*) FROM pipeline.batches WHERE completed_at IS NULL") == 0


@pytest.mark.parametrize("held", [False, True], ids=["at once", "later, because somebody has the batch"])
def test_a_job_that_was_cancelled_with_its_children_continues_with_their_ends_when_it_is_replayed(
    database: Db, connect: Connect, held: bool
) -> None:
    hold, app = steps.held(database, "triple"), connect()
    batch = spawn(database, hold, 3)
    end(database, children(database, batch)[0])
    with app.transaction():
        if held:
            app.execute("SELECT 1 FROM pipeline.batches WHERE id = %s FOR UPDATE", (batch,))
        assert steps.cancel(database, hold.job) and steps.replay(database, hold.job)
        assert waits(database, hold.job) == (f"children:{batch}" if held else None)
    assert steps.one(database, "SELECT pipeline.finish_batches()") is False
    told = {"batch": str(batch), "total": 3, "failed": 2, "policy": "best_effort"}
    assert results(database, hold.job) == {phases(database)[0]: told}
    assert [row["job_id"] for row in steps.admit(database)] == [hold.job]
    ends = steps.rows(database, "SELECT status FROM pipeline.ends(%s, NULL, 0, 10)", batch)
    assert [row["status"] for row in ends] == ["succeeded", "cancelled", "cancelled"]


@pytest.mark.parametrize(("policy", "how"), [("all", "fail"), ("any", "complete")])
def test_one_end_may_be_enough_and_the_other_children_are_cancelled(database: Db, policy: str, how: str) -> None:
    hold = steps.held(database, "triple")
    batch = spawn(database, hold, 4, policy)
    first, second, *rest = children(database, batch)
    end(database, first, "complete" if policy == "all" else "fail")
    assert waits(database, hold.job) is not None
    end(database, second, how)
    assert waits(database, hold.job) is None
    told = results(database, hold.job)[phases(database)[0]]
    assert (told["failed"], told.get("child")) == (1, str(second) if policy == "all" else None)
    # The parent may look before they are cancelled.
    ends = steps.rows(database, "SELECT status, error FROM pipeline.ends(%s, NULL, 2, 100)", batch)
    assert ends == 2 * [{"status": "cancelled", "error": "the job that waited for it has what it needs"}]
    assert steps.one(database, "SELECT pipeline.cancel_superfluous()") is True
    assert {steps.job(database, one)["status"] for one in rest} == {"cancelled"}
    assert steps.one(database, "SELECT pipeline.cancel_superfluous()") is False
    # The ends that came later woke nobody.
    assert steps.job(database, hold.job)["fence"] == hold.fence
    assert steps.batch(database, batch)["completed_at"] is not None


def test_a_parent_that_somebody_holds_is_woken_later_and_nobody_waits(database: Db, connect: Connect) -> None:
    hold, app = steps.held(database, "triple"), connect()
    [one] = children(database, spawn(database, hold, 1))
    with app.transaction():
        app.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (hold.job,))
        end(database, one)
        assert steps.job(database, one)["status"] == "succeeded"
        assert waits(database, hold.job) is not None
        assert steps.one(database, "SELECT pipeline.finish_batches()") is True
    assert steps.one(database, "SELECT pipeline.finish_batches()") is False
    assert waits(database, hold.job) is None


def test_children_of_children_end_somewhere(database: Db) -> None:
    hold = steps.held(database, "triple")
    for _ in range(10):
        [one] = children(database, spawn(database, hold, 1, workflow="triple"))
        hold = steps.hold(database, one)
    with pytest.raises(psycopg.Error, match="10 levels deep"):
        spawn(database, hold, 1)


def test_children_are_kept_until_their_parent_has_ended(database: Db) -> None:
    hold = steps.held(database, "triple")
    [one] = children(database, spawn(database, hold, 1))
    end(database, one)
    database.execute("UPDATE pipeline.jobs SET completed_at = completed_at - interval '9 days' WHERE id = %s", (one,))
    prune = "SELECT pipeline.prune('-1 day', 100)"
    assert steps.one(database, prune) == 0
    steps.cancel(database, hold.job)
    assert steps.one(database, prune) == 2


def test_children_of_a_failed_job_are_kept_as_it_is(database: Db) -> None:
    """It may be replayed, and looks at their ends again."""
    hold = steps.held(database, "triple")
    [one] = children(database, spawn(database, hold, 1))
    end(database, one)
    assert steps.fail(database, steps.hold(database, hold.job)) == "failed"
    database.execute("UPDATE pipeline.jobs SET completed_at = completed_at - interval '9 days' WHERE id = %s", (one,))
    prune = "SELECT pipeline.prune('-1 day', 100)"
    assert steps.one(database, prune) == 0
    assert steps.replay(database, hold.job) and steps.cancel(database, hold.job)
    assert steps.one(database, prune) == 2


def test_verify_finds_a_wait_for_what_has_come_and_repairs_it(database: Db) -> None:
    told, parent = wait(database, event="approved"), steps.held(database, "triple")
    batch = spawn(database, parent, 1)
    assert steps.rows(database, "SELECT * FROM pipeline.verify(false)") == []
    database.execute("INSERT INTO pipeline.signals (job_id, name, body) VALUES (%s, 'approved', '5')", (told,))
    database.execute("UPDATE pipeline.batches SET answered_at = now() WHERE id = %s", (batch,))
    found = steps.rows(database, "SELECT * FROM pipeline.verify(true) ORDER BY subject")
    expected = [(told, "event:approved"), (parent.job, f"children:{batch}")]
    assert [(row["problem"], row["subject"], row["detail"]) for row in found] == sorted(
        ("waits for what has come", str(job), detail) for job, detail in expected
    )
    assert results(database, told) == {phases(database)[0]: 5}
    assert (waits(database, told), waits(database, parent.job)) == (None, None)
