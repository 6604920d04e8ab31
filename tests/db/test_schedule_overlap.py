"""What becomes of a moment while the job of an earlier one has not ended."""

from __future__ import annotations

from datetime import timedelta

from pipeline.store.engine import Wire
from tests.db import schedules
from tests.db.conftest import Connect
from tests.db.schedules import HOUR, MINUTE, now, skip
from tests.db.steps import Db


def test_jobs_may_overlap_by_default(database: Db, wire: Wire) -> None:
    schedules.planned(database, wire, every=10.0, catch_up=3)
    schedules.missed(database, seconds=10.0)
    schedules.look(wire)
    schedules.missed(database, seconds=20.0)
    database.execute("DELETE FROM pipeline.keys")
    schedules.look(wire)
    assert len(schedules.jobs(database)) >= 2


def test_skip_leaves_moments_out_until_the_job_has_ended(database: Db, wire: Wire) -> None:
    """The schedule goes on all the same."""
    schedules.planned(database, wire, overlap="skip")
    schedules.missed(database, seconds=MINUTE)
    schedules.look(wire)
    [job] = schedules.jobs(database)
    skip(database, wire)
    assert [one["id"] for one in schedules.jobs(database)] == [job["id"]]
    assert schedules.one(database)["next_at"] > now(database)
    schedules.end(database, job["id"])
    skip(database, wire)
    assert len(schedules.jobs(database)) == 2


def test_cancel_ends_the_old_job_for_the_new_one(database: Db, wire: Wire) -> None:
    """In one transaction, with the reason in its history."""
    schedules.planned(database, wire, overlap="cancel")
    schedules.missed(database, seconds=MINUTE)
    schedules.look(wire)
    [old] = schedules.jobs(database)
    skip(database, wire)
    old_now, new = schedules.jobs(database)
    assert (old_now["id"], old_now["status"], new["status"]) == (old["id"], "cancelled", "pending")
    assert old_now["error_message"] == "the next moment of schedule often has come"


def test_a_job_to_be_cancelled_that_somebody_holds_is_not_waited_for(
    database: Db, wire: Wire, connect: Connect
) -> None:
    """The moment stays due; other schedules get their jobs."""
    schedules.planned(database, wire, overlap="cancel")
    schedules.missed(database, seconds=MINUTE)
    schedules.look(wire)
    [old] = schedules.jobs(database)
    schedules.planned(database, wire, "other")
    schedules.missed(database, "other", MINUTE)
    with schedules.held(connect(), "SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", old["id"]):
        skip(database, wire)
        assert len(schedules.jobs(database)) == 1 and len(schedules.jobs(database, "other")) == 1
    schedules.look(wire)
    assert [job["status"] for job in schedules.jobs(database)] == ["cancelled", "pending"]


def test_queue_makes_the_moment_wait_for_the_job_before(database: Db, wire: Wire) -> None:
    """It is looked at once a second; the moments that came meanwhile are made up as missed ones are."""
    schedules.planned(database, wire, overlap="queue", every=2 * HOUR, catch_up=3)
    schedules.missed(database, seconds=2 * HOUR)
    schedules.look(wire)
    [job], [first] = schedules.jobs(database), schedules.moments(database)
    oldest = schedules.missed(database, seconds=10 * HOUR)
    database.execute("DELETE FROM pipeline.keys")
    assert 0.9 < schedules.look(wire) <= 1
    row = schedules.one(database)
    assert row["waits"] and len(schedules.jobs(database)) == 1
    schedules.end(database, job["id"])
    schedules.look(wire)
    assert len(schedules.jobs(database)) == 2 and schedules.one(database)["waits"]
    for count in (3, 4):
        schedules.end(database, schedules.one(database)["last_job"])
        schedules.look(wire)
        assert len(schedules.jobs(database)) == count
    assert schedules.moments(database) == sorted([first, *(oldest + timedelta(hours=2) * n for n in (2, 3, 4))])
    assert not schedules.one(database)["waits"]
