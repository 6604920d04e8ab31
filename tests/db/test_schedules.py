"""Schedules: each moment gets one job, in the transaction that moves its schedule on; whoever looks, however often."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import UUID

import psycopg
import pytest

from pipeline.dev.services import Servers
from pipeline.maintenance.schedules import Schedules
from pipeline.store import engine as engines
from pipeline.store.engine import Wire
from pipeline.store.gateway import schedules as gateway
from tests.databases import Lasting
from tests.db import schedules, steps, together
from tests.db.conftest import Connect
from tests.db.schedules import HOUR, MINUTE
from tests.db.steps import Db

LISTED = "SELECT * FROM pipeline.list_schedules()"
FIND = "SELECT 1 FROM pipeline.schedules WHERE name = %s FOR UPDATE"


@pytest.fixture
def wire(servers: Servers, lasting: Lasting, database: Db) -> Iterator[Wire]:
    """The leader's connection."""
    with engines.connect(servers.postgres.url(lasting.name), "test") as connection:
        yield connection


def open_wire(servers: Servers, lasting: Lasting) -> Wire:
    return engines.connect(servers.postgres.url(lasting.name), "test")


def now(db: Db) -> datetime:
    found: datetime = steps.one(db, "SELECT now()")
    return found


def several(db: Db, wire: Wire, *names: str) -> None:
    """A moment of each has come."""
    for name in names:
        schedules.planned(db, wire, name)
    for name in names:
        schedules.missed(db, name, MINUTE)


def steer(db: Db, what: str, name: str = "often") -> Any:
    return steps.one(db, f"SELECT pipeline.{what}('single', %s)", name)


# ---- a moment and its job


def test_a_new_schedule_waits_for_its_first_moment(database: Db, wire: Wire) -> None:
    """Which is the next one after it was made, by PostgreSQL's clock; the leader sleeps until then."""
    before = now(database)
    first = schedules.planned(database, wire, cron="*/5 * * * *")
    assert before < first <= before + timedelta(minutes=5) and first.minute % 5 == 0
    assert 0 < schedules.look(wire) <= 300
    assert schedules.jobs(database) == []


def test_a_moment_gets_one_job_with_all_that_was_said(database: Db, wire: Wire) -> None:
    """Body, priority, tags; one more tag by which it is found, and the moment."""
    schedules.planned(database, wire, body={"n": 1}, priority=7, tags=["vip"])
    schedules.missed(database, seconds=MINUTE)
    for _ in range(3):
        assert schedules.look(wire) <= MINUTE
    [job] = schedules.jobs(database)
    assert (job["body"], job["priority"], job["tags"]) == ({"n": 1}, 7, ["vip", "schedule:often"])
    row = schedules.one(database)
    assert (row["last_job"], row["last_at"]) == (job["id"], row["next_at"] - timedelta(minutes=1))
    assert schedules.moments(database) == [row["last_at"]]
    assert steps.waiting(database, job["id"]) is not None
    listed = "SELECT ids FROM pipeline.list_jobs('single', NULL, NULL, %s, 10, 1000, 'schedule:often')"
    assert steps.one(database, listed, UUID(int=2**128 - 1)) == [job["id"]]


def test_a_job_beside_the_schedules_has_no_moment(database: Db) -> None:
    assert steps.one(database, "SELECT pipeline.moment(%s)", steps.submit(database, key="schedule")) is None


def test_the_look_says_when_the_next_one_is_due(database: Db, wire: Wire) -> None:
    """The earliest of all; endless if there is none."""
    assert Schedules().look(wire) == float("inf")
    schedules.planned(database, wire, "rare", every=86400.0)
    schedules.planned(database, wire, "often", every=10.0)
    assert 0 < schedules.look(wire) <= 10


def test_a_change_wakes_the_leader(database: Db, wire: Wire, connect: Connect) -> None:
    """When it commits: a new one, another time, a resumed one, a backfill. The same again says nothing."""
    listener = connect()
    listener.execute("LISTEN pipeline_maintenance")

    def told() -> list[str]:
        return [n.payload for n in listener.notifies(timeout=0.1)]

    schedules.planned(database, wire)
    assert told() == ["schedule"]
    schedules.add(database)
    assert told() == []
    schedules.add(database, every=5 * MINUTE)
    steer(database, "pause_schedule")
    steer(database, "resume_schedule")
    database.execute("SELECT pipeline.backfill('single', 'often', now() - interval '1 hour', now())")
    assert told() == ["schedule"] * 3


# ---- never two, never none


def test_two_leaders_make_one_job_a_moment(database: Db, servers: Servers, lasting: Lasting) -> None:
    """Both look at the same moment, again and again."""
    for n in range(20):
        schedules.add(database, f"s{n}", every=10.0, catch_up=1000)
    with open_wire(servers, lasting) as one, open_wire(servers, lasting) as two:
        schedules.look(one)
        for n in range(20):
            schedules.missed(database, f"s{n}", 1000.0)
        together.at_once([partial(schedules.look, wire) for wire in (one, two)])
        schedules.look(one)
    for n in range(20):
        found = schedules.moments(database, f"s{n}")
        assert len(set(found)) == len(found) >= 100
        assert {b - a for a, b in pairwise(found)} == {timedelta(seconds=10)}


def test_what_was_worked_out_from_an_older_row_changes_nothing(database: Db, wire: Wire) -> None:
    """A leader that was frozen between its look and its step; one that never heard of its commit."""
    schedules.planned(database, wire)
    moment = schedules.missed(database, seconds=MINUTE)
    row = schedules.one(database)
    wish = gateway.Wish(row["id"], row["revision"], moment, [moment], moment + timedelta(minutes=1), None)
    assert [one.submitted for one in gateway.fire(wire, [wish])] == [1]
    assert gateway.fire(wire, [wish]) == []
    schedules.add(database, every=2 * MINUTE)
    changed = schedules.one(database)
    assert (
        gateway.fire(wire, [gateway.Wish(changed["id"], row["revision"] + 1, changed["next_at"], [], None, None)]) == []
    )
    assert len(schedules.jobs(database)) == 1


def test_a_moment_has_one_job_even_if_a_row_goes_back(database: Db, wire: Wire) -> None:
    """Somebody's clock or UPDATE moved it: the key of the job says which moment it is for."""
    schedules.planned(database, wire, every=10.0, catch_up=1000)
    schedules.missed(database, seconds=100)
    schedules.look(wire)
    made = len(schedules.jobs(database))
    schedules.missed(database, seconds=100)
    schedules.look(wire)
    assert 10 <= made <= len(schedules.jobs(database)) <= made + 1


def test_a_transaction_that_rolls_back_leaves_the_moment_due(database: Db, wire: Wire) -> None:
    """The jobs and the step are one."""
    schedules.planned(database, wire)
    moment = schedules.missed(database, seconds=MINUTE)
    with wire.transaction(force_rollback=True):
        schedules.look(wire)
    assert schedules.one(database)["next_at"] == moment and schedules.jobs(database) == []
    schedules.look(wire)
    assert len(schedules.jobs(database)) == 1


def test_a_row_that_somebody_holds_is_passed_by(database: Db, wire: Wire, connect: Connect) -> None:
    """The others get their jobs; it is asked for again soon, and gets its own."""
    several(database, wire, "held", "free")
    leader = Schedules()
    with schedules.held(connect(), FIND, "held"):
        assert leader.look(wire) == 0.0
        assert 0 < leader.look(wire) <= 0.5
        assert (len(schedules.jobs(database, "free")), len(schedules.jobs(database, "held"))) == (1, 0)
    schedules.look(wire)
    assert len(schedules.jobs(database, "held")) == 1


def test_one_that_fails_keeps_no_other_waiting(database: Db, wire: Wire) -> None:
    """Whatever the reason is: here somebody's trigger."""
    several(database, wire, "bad", "good", "fine")
    database.execute("CREATE FUNCTION public.no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'")
    database.execute(
        "CREATE TRIGGER no BEFORE INSERT ON pipeline.jobs FOR EACH ROW WHEN ('schedule:bad' = ANY (NEW.tags)) EXECUTE FUNCTION public.no()"
    )
    leader = Schedules()
    try:
        assert leader.look(wire) == 0.0
        assert leader.look(wire) > 1
    finally:
        database.execute("DROP TRIGGER no ON pipeline.jobs")
        database.execute("DROP FUNCTION public.no()")
    assert [len(schedules.jobs(database, name)) for name in ("bad", "good", "fine")] == [0, 1, 1]


def test_a_thousand_take_a_few_round_trips(database: Db, wire: Wire) -> None:
    """Not one each."""
    database.execute("SELECT pipeline.schedule('single', 's' || n, '* * * * *') FROM generate_series(1, 1000) AS n")
    schedules.look(wire)
    database.execute("UPDATE pipeline.schedules SET next_at = date_trunc('minute', now()), revision = revision + 1")
    executed = []
    execute = wire.execute

    def counted(*said: Any) -> Any:
        executed.append(said[0])
        return execute(*said)

    wire.execute = counted  # type: ignore[method-assign]  # it counts
    schedules.look(wire)
    assert len(executed) == 11
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs") == 1000


def test_the_look_reads_what_is_due_and_no_others(database: Db, wire: Wire) -> None:
    """By an index, however many schedules there are."""
    database.execute("SELECT pipeline.schedule('single', 's' || n, '0 0 1 1 *') FROM generate_series(1, 1000) AS n")
    database.execute("UPDATE pipeline.schedules SET planned = true, next_at = now() + interval '1 day'")
    database.execute("ANALYZE pipeline.schedules")
    for query in (
        "SELECT id FROM pipeline.schedules WHERE look_at <= now() AND look_at < 'infinity' ORDER BY look_at, id LIMIT 100",
        "SELECT look_at FROM pipeline.schedules WHERE look_at > now() AND look_at < 'infinity' ORDER BY look_at LIMIT 1",
        "SELECT 1 FROM pipeline.schedules WHERE waits LIMIT 1",
    ):
        plan = "\n".join(row["QUERY PLAN"] for row in steps.rows(database, f"EXPLAIN {query}"))
        assert "Index" in plan and "Seq Scan" not in plan, plan


# ---- what was missed


def test_after_an_outage_the_latest_moment_is_made_up(database: Db, wire: Wire) -> None:
    """By default; the next one is in the future."""
    schedules.planned(database, wire, every=10 * MINUTE)
    schedules.missed(database, seconds=5 * HOUR)
    schedules.look(wire)
    row = schedules.one(database)
    assert schedules.moments(database) == [row["next_at"] - timedelta(minutes=10)]
    assert row["next_at"] > now(database)


@pytest.mark.parametrize(
    ("wish", "made"),
    [({"catch_up": 0}, 0), ({"catch_up": 5}, 5), ({"catch_up": 1000}, 30), ({"catch_up_for": 3 * HOUR}, 18)],
)
def test_as_many_are_made_up_as_were_asked_for(database: Db, wire: Wire, wish: dict[str, Any], made: int) -> None:
    """The latest ones, each with its moment."""
    schedules.planned(database, wire, every=10 * MINUTE, **wish)
    schedules.missed(database, seconds=5 * HOUR)
    schedules.look(wire)
    found = schedules.moments(database)
    # A moment that came just now is on time, and one more may have come meanwhile.
    assert made <= len(found) <= made + 1
    last = schedules.one(database)["next_at"]
    assert found == [last - timedelta(minutes=10) * n for n in range(len(found), 0, -1)]


def test_many_are_made_up_over_several_transactions(database: Db, wire: Wire) -> None:
    """A hundred each: nobody waits long behind them."""
    schedules.planned(database, wire, every=10.0, catch_up=350)
    schedules.missed(database, seconds=5 * HOUR)
    leader = Schedules()
    for done in (100, 200, 300):
        assert leader.look(wire) == 0.0
        assert len(schedules.jobs(database)) == done
    schedules.look(wire)
    assert 350 <= len(set(schedules.moments(database))) <= 352


# ---- while an earlier job has not ended


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


def skip(db: Db, wire: Wire, name: str = "often") -> None:
    """The next moment comes: none that has a job already."""
    row = schedules.one(db, name)
    db.execute("UPDATE pipeline.keys SET key = key || 'x'")
    schedules.missed(db, name, row["every"].total_seconds())
    schedules.look(wire)


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


# ---- steering


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
