"""Schedules are paused, resumed, run, made up for and removed; and what is wrong with one is said."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

import psycopg
import pytest

from pipeline.maintenance.schedules import Schedules
from pipeline.store.engine import Wire
from tests.db import schedules, steps
from tests.db.conftest import Connect
from tests.db.schedules import HOUR, LISTED, MINUTE, now, skip, steer
from tests.db.steps import Db


def test_a_paused_schedule_gets_no_jobs_and_what_it_missed_is_not_made_up(database: Db, wire: Wire) -> None:
    """Its moments count from the moment it is resumed."""
    schedules.planned(database, wire, catch_up=1000)
    assert steer(database, "pause_schedule") and not steer(database, "pause_schedule")
    schedules.missed(database, seconds=HOUR)
    assert schedules.look(wire) == float("inf") and schedules.jobs(database) == []
    assert steps.rows(database, LISTED)[0]["next_at"] is None
    assert steer(database, "resume_schedule") and not steer(database, "resume_schedule")
    assert 0 < schedules.look(wire) <= MINUTE
    assert schedules.jobs(database) == []


def test_what_changes_beside_the_time_leaves_the_next_moment(database: Db, wire: Wire) -> None:
    """And a pause stays; another time counts from now on."""
    schedules.planned(database, wire, every=10.0, catch_up=1000)
    missed = schedules.missed(database, seconds=HOUR)
    schedules.add(database, every=10.0, catch_up=1000, body={"n": 2})
    assert schedules.one(database)["next_at"] == missed
    steer(database, "pause_schedule")
    schedules.add(database, every=MINUTE)
    row = schedules.one(database)
    assert row["paused_at"] is not None and not row["planned"] and row["next_at"] > now(database) - timedelta(minutes=1)


def test_run_now_is_beside_the_moments(database: Db, wire: Wire) -> None:
    """Also while it is paused; a schedule without overlap knows of its job."""
    first = schedules.planned(database, wire, overlap="skip", body={"n": 1})
    steer(database, "pause_schedule")
    job = steer(database, "run_schedule")
    assert (
        steps.job(database, job)["body"] == {"n": 1} and steps.one(database, "SELECT pipeline.moment(%s)", job) is None
    )
    assert schedules.one(database)["next_at"] == first and schedules.one(database)["last_job"] == job
    steer(database, "resume_schedule")
    skip(database, wire)
    assert [one["id"] for one in schedules.jobs(database)] == [job]


def test_a_backfill_gives_each_moment_of_the_past_one_job(database: Db, wire: Wire) -> None:
    """But for those that have one. Also while it is paused; another one may be asked for when it is done."""
    schedules.planned(database, wire, every=10 * MINUTE, catch_up=12)
    schedules.missed(database, seconds=2 * HOUR)
    schedules.look(wire)
    made = len(schedules.jobs(database))
    steer(database, "pause_schedule")
    backfill = "SELECT pipeline.backfill('single', 'often', now() - interval '30 hours', now())"
    database.execute(backfill)
    with pytest.raises(psycopg.Error, match=r"a backfill until .* is under way"):
        database.execute(backfill)
    schedules.look(wire)
    found = schedules.moments(database)
    assert len(found) == len(set(found)) == 180 > made
    assert schedules.one(database)["backfill_until"] is None
    database.execute(backfill)


def test_a_backfill_keeps_jobs_apart_that_may_not_overlap(database: Db, wire: Wire) -> None:
    """One after another."""
    schedules.planned(database, wire, every=HOUR, overlap="skip")
    database.execute(
        "SELECT pipeline.backfill('single', 'often', now() - interval '4 hours', now() - interval '1 hour')"
    )
    for count in (1, 2, 3):
        assert 0 < schedules.look(wire) <= 1 or count == 3
        assert len(schedules.jobs(database)) == count
        schedules.end(database, schedules.one(database)["last_job"])
    schedules.look(wire)
    found = schedules.moments(database)
    assert len(found) == 3 and found == sorted(found) and not schedules.one(database)["waits"]


def test_no_moment_waits_behind_a_backfill(database: Db, wire: Wire) -> None:
    """Five days of seconds are asked for, four times; the moment that has come gets its job in the next look."""
    schedules.planned(database, wire)
    for name in ("past0", "past1", "past2", "past3"):
        schedules.add(database, name, every=1.0)
        steer(database, "pause_schedule", name)
        database.execute(f"SELECT pipeline.backfill('single', '{name}', now() - interval '5 days', now())")
    leader = Schedules()
    for _ in range(3):
        assert leader.look(wire) == 0.0
    schedules.missed(database, seconds=MINUTE)
    assert leader.look(wire) == 0.0
    assert len(schedules.jobs(database)) == 1
    assert len(schedules.jobs(database, "past0")) >= 100


def test_a_removed_schedule_leaves_its_jobs(database: Db, wire: Wire) -> None:
    schedules.planned(database, wire)
    schedules.missed(database, seconds=MINUTE)
    schedules.look(wire)
    assert steer(database, "unschedule") and not steer(database, "unschedule")
    assert len(schedules.jobs(database)) == 1 and steps.rows(database, LISTED) == []


# ---- what is refused, and what turns out wrong later


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"name": "Often"}, "'Often' is not a name"),
        ({"name": "o" * 51}, "is not a name"),
        ({"cron": None, "every": None}, "either a cron expression or an interval"),
        ({"cron": "* * * *"}, r"'\* \* \* \*' is not a cron expression: it has five fields"),
        ({"cron": "* * * * * *"}, "five fields"),
        ({"cron": "@reboot"}, "five fields"),
        ({"every": 0.5}, "whole seconds"),
        ({"every": 1.5}, "whole seconds"),
        ({"cron": "@daily", "timezone": "Europe/Pariss"}, "there is no time zone 'Europe/Pariss'"),
        ({"every": 5.0, "timezone": "UTC"}, "leave the zone out"),
        ({"overlap": "maybe"}, "overlap is allow, skip, queue or cancel, not maybe"),
        ({"overlap": None}, "not null"),
        ({"catch_up": 1001}, "0 to 1000 moments"),
        ({"catch_up": 1, "catch_up_for": 60.0}, "either a number of moments or an age"),
        ({"catch_up_for": 40 * 86400.0}, "up to 31 days ago"),
        ({"priority": 10}, "priority 10 is outside"),
        ({"tags": ["t"] * 20}, "at most 19 tags"),
        ({"tags": ["t" * 65]}, "a tag has 1 to 64 characters"),
        ({"body": [1]}, "body 1 is not a JSON object"),
        ({"workflow": "nowhere"}, "unknown workflow 'nowhere'"),
    ],
)
def test_what_cannot_be_meant_is_refused(database: Db, wish: dict[str, Any], said: str) -> None:
    """Each with a sentence of its own, and nothing stays behind."""
    with pytest.raises(psycopg.Error, match=said) as refused:
        schedules.add(database, **{"name": "often", **wish})
    assert (refused.value.sqlstate or "").startswith("PL") and steps.rows(database, LISTED) == []


@pytest.mark.parametrize("what", ["pause_schedule", "resume_schedule", "run_schedule"])
def test_a_schedule_that_does_not_exist_cannot_be_steered(database: Db, what: str) -> None:
    """The answer names those that do."""
    schedules.add(database, "other")
    with pytest.raises(psycopg.Error, match="there is no schedule often of single") as refused:
        steer(database, what)
    assert refused.value.diag.message_hint == "its schedules: other"


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ("now()", "now() - interval '1 hour'", "begins before it ends"),
        ("NULL", "now()", "begins before it ends"),
        ("now()", "now() + interval '1 hour'", "ends in the past"),
        ("now() - interval '400 days'", "now()", "up to 366 days"),
    ],
)
def test_a_backfill_is_of_the_past(database: Db, first: str, last: str, said: str) -> None:
    schedules.add(database)
    with pytest.raises(psycopg.Error, match=said):
        database.execute(f"SELECT pipeline.backfill('single', 'often', {first}, {last})")


def test_a_cron_expression_that_means_nothing_says_so(database: Db, wire: Wire) -> None:
    """SQL sees five fields; the leader sees what is in them, leaves the schedule alone, and tries a corrected one."""
    schedules.add(database, cron="0 0 * * tuesday")
    assert schedules.look(wire) == float("inf")
    assert "bad day-of-week" in steps.rows(database, LISTED)[0]["problem"]
    [finding] = steps.rows(database, "SELECT * FROM pipeline.verify(false)")
    assert (finding["problem"], finding["subject"]) == ("schedule without jobs", "single.often")
    schedules.add(database, cron="0 0 * * tue")
    schedules.look(wire)
    row = schedules.one(database)
    assert row["problem"] is None and row["next_at"].astimezone(UTC).weekday() == 1


def test_a_workflow_that_is_gone_says_so_and_the_schedule_goes_on(database: Db, wire: Wire) -> None:
    """The moments until it is back get no jobs."""
    schedules.planned(database, wire)
    schedules.missed(database, seconds=MINUTE)
    database.execute("UPDATE pipeline.phases SET position = 0 WHERE workflow = 'single'")
    schedules.look(wire)
    row = schedules.one(database)
    assert "has no phase" in row["problem"] and row["next_at"] > now(database)
    database.execute("UPDATE pipeline.phases SET position = 1 WHERE workflow = 'single'")
    skip(database, wire)
    assert schedules.one(database)["problem"] is None and len(schedules.jobs(database)) == 1


def test_verify_finds_a_schedule_that_a_living_leader_leaves_alone(database: Db, wire: Wire, connect: Connect) -> None:
    """While nobody leads there is nothing wrong with the schedule."""
    schedules.planned(database, wire)
    schedules.missed(database, seconds=HOUR)
    find = "SELECT problem, subject FROM pipeline.verify(true)"
    assert steps.rows(database, find) == []
    with schedules.held(connect(), "LOCK TABLE pipeline.maintenance_leader IN SHARE UPDATE EXCLUSIVE MODE"):
        assert steps.rows(database, find) == [{"problem": "schedule that nobody moves on", "subject": "single.often"}]
        schedules.look(wire)
        assert steps.rows(database, find) == []
