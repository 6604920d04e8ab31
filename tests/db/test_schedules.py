"""Schedules: each moment gets one job, in the transaction that moves its schedule on; whoever looks, however often."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from pipeline.dev.services import Servers
from pipeline.maintenance.schedules import Schedules
from pipeline.store import engine as engines
from pipeline.store.engine import Wire
from pipeline.store.gateway import schedules as gateway
from tests.databases import Lasting
from tests.db import schedules, steps, together
from tests.db.conftest import Connect
from tests.db.schedules import HOUR, MINUTE, now, steer
from tests.db.steps import Db

FIND = "SELECT 1 FROM pipeline.schedules WHERE name = %s FOR UPDATE"


def open_wire(servers: Servers, lasting: Lasting) -> Wire:
    return engines.connect(servers.postgres.url(lasting.name), "test")


def several(db: Db, wire: Wire, *names: str) -> None:
    """A moment of each has come."""
    for name in names:
        schedules.planned(db, wire, name)
    for name in names:
        schedules.missed(db, name, MINUTE)


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

    wire.execute = counted  # type: ignore[method-assign,assignment]  # it counts
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
        "SELECT id FROM pipeline.schedules WHERE backfill_at IS NOT NULL AND NOT waits ORDER BY backfill_at LIMIT 2",
    ):
        plan = "\n".join(row["QUERY PLAN"] for row in steps.rows(database, f"EXPLAIN {query}"))
        assert "Index" in plan and "Seq Scan" not in plan, plan


def test_a_transaction_is_bounded_by_its_jobs(database: Db, wire: Wire) -> None:
    """Many schedules that make up for much take several: what reclaim has to do comes in between."""
    names = [f"s{n}" for n in range(12)]
    for name in names:
        schedules.add(database, name, every=10.0, catch_up=100)
    schedules.look(wire)
    for name in names:
        schedules.missed(database, name, HOUR)
    leader, count = Schedules(), "SELECT count(*) FROM pipeline.jobs"
    for jobs in (500, 1000, 1200):
        assert leader.look(wire) == 0.0
        assert abs(steps.one(database, count) - jobs) <= 24


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
