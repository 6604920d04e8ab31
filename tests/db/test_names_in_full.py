"""G10: functions name their objects in full. Whatever a caller's search_path holds or lacks, they find the same.

All of tests/db runs with a search_path that has none of our objects (conftest.py); here every function is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.db import schedules, steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold
from tests.db.test_keep_steps import keep_steps

OURS = """SELECT p.oid::regprocedure::text AS name, p.prosrc AS body, p.prosecdef AS definer, p.proconfig AS settings,
        pg_get_functiondef(p.oid) AS definition, l.lanname AS language
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace = 'pipeline'::regnamespace AND p.prokind = 'f' ORDER BY 1"""
CALLED = """SELECT s.funcid::regprocedure::text AS name FROM pg_stat_user_functions s WHERE s.schemaname = 'pipeline'"""
# A relation, function or type without a schema: words that follow these must be qualified, or a name of the statement's.
UNQUALIFIED = re.compile(
    r"\b(?:FROM|JOIN|INTO|UPDATE|USING)\s+(?:ONLY\s+)?(phases|batches|batch_ends|jobs|outbox|attempts|workers|rate_limits|breakers|breaker_failures|"
    r"permits|turns|key_turns|key_rates|rollups|rollup_quarters|counter_totals|schedules|signals|hooks|running_jobs|processors|counters)\b(?!\s*,\s*first_at)",
    re.IGNORECASE,
)


@pytest.fixture
def db(connect: Connect) -> Iterator[Db]:
    connection = connect()
    connection.execute("SET track_functions = 'all'")
    yield connection


def test_every_function_does_its_work_without_a_search_path(db: Db) -> None:
    """One journey that calls each of them; no name is found but by its schema."""
    assert steps.one(db, "SHOW search_path") == "pg_catalog"
    number = steps.sign_on(db, "w1")
    _phases(db)
    _ends(db)
    _gates(db)
    _batches(db)
    _keys(db)
    _schedules(db)
    _waits(db)
    _rate_limits(db)
    _turns(db)
    _lost_workers(db)
    _operators(db, number)
    _reports(db)
    db.execute("SELECT pg_stat_force_next_flush()")
    # A function in SQL may become part of the statement that calls it, where nobody counts: see the next test.
    known = {row["name"] for row in steps.rows(db, OURS) if row["language"] == "plpgsql"}
    called = {row["name"] for row in steps.rows(db, CALLED)}
    assert sorted(known - called) == []


def test_sql_functions_are_understood_without_a_search_path(db: Db) -> None:
    """PostgreSQL looks up every name in them when they are created."""
    with db.transaction(force_rollback=True):
        db.execute("SET LOCAL check_function_bodies = on")
        for row in steps.rows(db, OURS):
            db.execute(row["definition"].encode())


def test_no_function_names_a_table_without_its_schema(db: Db) -> None:
    """PL/pgSQL finds names when it runs: branches that no test takes are read instead."""
    guilty = {row["name"]: found for row in steps.rows(db, OURS) if (found := UNQUALIFIED.findall(row["body"]))}
    assert not guilty


def test_what_runs_with_its_owners_rights_is_safe_from_its_caller(db: Db) -> None:
    """A fixed search_path, temporary objects last, and no statement that is put together from what the caller sends."""
    found = steps.rows(db, OURS)
    definers = [row for row in found if row["definer"]]
    assert definers
    for row in definers:
        assert "search_path=pg_catalog, pg_temp" in row["settings"], row["name"]
    # They call others, which are as safe because none of all executes text.
    assert not [row["name"] for row in found if re.search(r"\bEXECUTE\b", row["body"], re.IGNORECASE)]


def test_a_callers_own_objects_are_not_used(connect: Connect) -> None:
    """Neither a temporary table nor a function of the caller's schema gets in between."""
    db = connect()
    for statement in (
        "CREATE TEMPORARY TABLE jobs (id uuid)",
        "CREATE TEMPORARY TABLE pg_locks (pid integer)",
        "CREATE SCHEMA trap",
        "CREATE FUNCTION trap.now() RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END'",
        "CREATE FUNCTION trap.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END'",
        "SET search_path = trap, pg_temp, public, pg_catalog",
    ):
        db.execute(statement.encode())
    job = steps.submit(db)
    assert steps.cancel(db, job)
    db.execute("DROP SCHEMA trap CASCADE")


def _phases(db: Db) -> None:
    """Three phases; the last is continued by its own worker."""
    hold = steps.held(db, "triple")
    steps.one(db, "SELECT pipeline.progress(%s, %s, 1, 2)", hold.job, hold.fence)
    assert steps.complete(db, hold, {"n": 1})["verdict"] == "handed_over"
    second = steps.hold(db, hold.job)
    third = steps.complete(db, second, continuing="triple.third")
    assert third["verdict"] == "continued"
    assert steps.complete(db, Hold(hold.job, third["fence"]))["verdict"] == "done"
    assert steps.complete(db, Hold(hold.job, third["fence"]))["verdict"] == "repeated"


def _ends(db: Db) -> None:
    hold = steps.held(db, "single")
    assert steps.retry(db, hold) == "retried"
    hold = steps.hold(db, hold.job)
    assert steps.snooze(db, hold) == "snoozed"
    hold = steps.hold(db, hold.job)
    assert steps.crash(db, hold) == "crashed"
    hold = steps.hold(db, hold.job)
    assert steps.fail(db, hold) == "failed"
    assert steps.fail(db, hold) == "failed"
    assert steps.replay(db, hold.job)
    send = steps.job(db, hold.job)["send"]
    steps.admit(db)
    assert steps.undeliverable(db, hold.job, send)
    steps.rows(db, "SELECT pipeline.refund(%s)", [hold.job])
    assert steps.cancel(db, steps.submit(db))


def _gates(db: Db) -> None:
    job = steps.submit(db)
    assert steps.one(db, "SELECT pipeline.request_send(%s, 'single.act')", job) == "accepted"
    [sent] = steps.admit(db)
    assert steps.unsend(db, job, sent["send"]) == 1
    steps.admit(db)
    steps.rows(db, "SELECT pipeline.still_sent(%s, %s)", [job], [sent["send"]])
    steps.rows(db, "SELECT * FROM pipeline.expected_messages(0)")
    steps.rows(db, "SELECT * FROM pipeline.unclaimed(now())")
    steps.rows(db, "SELECT * FROM pipeline.await_ends(%s)", [job])
    steps.rows(db, "SELECT * FROM pipeline.overtaken(now(), 1)")
    steps.rows(db, "SELECT * FROM pipeline.unstarted_messages(now(), '1 minute')")
    steps.rows(db, "SELECT pipeline.resend('single.act', now(), 0)")
    steps.submit(db, "paced")
    steps.held(db, "pooled")
    steps.rows(db, "SELECT pipeline.wake()")
    steps.admit(db, asleep=True)
    pooled = steps.held(db, "pooled")
    assert steps.one(db, "SELECT pipeline.hold_all(%s, %s)", [pooled.job], [pooled.fence]) == pooled.job
    keep_steps(db, (pooled, "fetch", "1"))
    assert steps.complete(db, pooled)["verdict"] in ("done", "handed_over")
    steps.rows(db, "SELECT pipeline.set_places(id, pool) FROM pipeline.phases")
    steps.rows(db, "SELECT * FROM pipeline.next_due()")
    db.execute("SELECT pipeline.pause('paced.slowly', 1)")
    steps.rows(db, "SELECT * FROM pipeline.pause_phases('paced', NULL, 'infinity')")
    steps.rows(db, "SELECT * FROM pipeline.resume_phases('paced', 'slowly')")
    assert steps.one(db, "SELECT pipeline.set_pool('single', 'act', 2)")
    assert steps.one(db, "SELECT pipeline.set_rate('single', 'act', 20, 1)")
    assert steps.one(db, "SELECT pipeline.set_pool('single', 'act', NULL, false)")
    assert steps.one(db, "SELECT pipeline.set_rate('single', 'act', NULL, NULL, false)")


def _batches(db: Db) -> None:
    batch = steps.open_batch(db, "single")
    child = steps.held(db, "single", batch=batch)
    steps.seal(db, batch)
    assert steps.complete(db, child)["verdict"] == "done"
    assert steps.batch(db, batch)["callback_job"] is not None
    db.execute("SELECT pipeline.finish_batches()")
    # Refused in the words of a job's body.
    with pytest.raises(psycopg.Error, match="not a JSON object"):
        steps.open_batch(db, "single", [1])


def _keys(db: Db) -> None:
    steps.rows(
        db, "SELECT pipeline.submit_many('single', '{\"{}\", \"{}\"}', p_keys => '{a, b}', p_unique => '1 hour')"
    )
    job = steps.submit(db, key="k", debounce=60.0)
    assert steps.submit(db, key="k", unique="replace", tags=["vip"]) == job
    assert steps.fail(db, steps.hold(db, job)) == "failed"
    assert steps.replay(db, job)
    late = steps.submit(db, expires=-1.0)
    steps.rows(db, "SELECT pipeline.expire_due()")
    assert steps.outcomes(db, late) == ["expired"]


def _schedules(db: Db) -> None:
    schedules.add(db)
    schedules.add(db, every=30.0, timezone=None, overlap="cancel")
    row = schedules.one(db)
    due = steps.rows(db, "SELECT * FROM pipeline.due_schedules(10)")
    assert [one["id"] for one in due] == [row["id"], None]
    job = steps.one(db, "SELECT pipeline.run_schedule('single', 'often')")
    wish = {"id": row["id"], "revision": row["revision"] + 1, "expected": row["next_at"].isoformat(), "next_at": None}
    wish |= {"moments": ["2026-01-01T00:00:00Z"], "backfill_at": None, "fills": False, "problem": None}
    [fired] = steps.rows(db, "SELECT * FROM pipeline.fire_schedules(%s)", Jsonb([wish]))
    assert (fired["verdict"], steps.job(db, job)["status"]) == ("fires", "cancelled")
    for steered in ("pause_schedule", "resume_schedule"):
        assert steps.one(db, f"SELECT pipeline.{steered}('single', 'often')")
    db.execute("SELECT pipeline.backfill('single', 'often', now() - interval '1 hour', now())")
    with pytest.raises(psycopg.Error, match="is declared in code"):
        steps.rows(
            db,
            "SELECT pipeline.declare_schedules('{single}', %s), pipeline.unschedule('single', 'nightly')",
            Jsonb(
                [
                    {
                        "workflow": "single",
                        "name": "nightly",
                        "cron": "@daily",
                        "body": {},
                        "overlap": "skip",
                        "priority": 0,
                    }
                ]
            ),
        )
    steps.rows(db, "SELECT pipeline.declare_schedules('{single}', '[]')")
    steps.rows(db, "SELECT pipeline.moment(%s), pipeline.list_schedules()", job)
    assert steps.one(db, "SELECT pipeline.unschedule('single', 'often')")


def _waits(db: Db) -> None:
    hold = steps.held(db, "triple")
    assert steps.one(db, "SELECT pipeline.signal_by_link(%s, 'first', '1')", hold.job) == "kept"
    steps.complete(db, hold, following={"event": "approved"})
    assert steps.cancel(db, hold.job) and steps.replay(db, hold.job)
    assert steps.one(db, "SELECT pipeline.signal(%s, 'approved', '1')", hold.job) == "delivered"
    hold, batch = steps.hold(db, hold.job), uuid4()
    with db.transaction():
        db.execute("SELECT pipeline.spawn(%s, %s, 'any', 'single', '{\"{}\",\"{}\"}', 0, NULL)", (hold.job, batch))
        steps.complete(db, hold, following={"batch": str(batch)})
    first = steps.one(db, "SELECT id FROM pipeline.ends(%s, NULL, 0, 1)", batch)
    steps.complete(db, steps.hold(db, first))
    assert steps.one(db, "SELECT pipeline.cancel_superfluous()") is True
    steps.complete(db, steps.hold(db, hold.job), following={"finish": True})
    db.execute("INSERT INTO pipeline.hooks (workflow, no, event, submits) VALUES ('single', 1, 'succeeded', 'pair')")
    steps.complete(db, steps.held(db, "single"))
    db.execute("DELETE FROM pipeline.hooks")
    steps.submit(db, "paced")
    steps.admit(db)
    other = steps.held(db, "triple")
    third = "SELECT phase FROM pipeline.phases WHERE workflow = 'triple' ORDER BY position DESC LIMIT 1"
    steps.complete(db, other, following={"phase": steps.one(db, third)})


def _rate_limits(db: Db) -> None:
    db.execute("SELECT pipeline.set_rate_limit('shop', 2)")
    job = steps.submit(db, rate_limit="shop")
    steps.rows(db, "SELECT * FROM pipeline.next_due()")
    hold = steps.hold(db, job)
    for calls in (1, 5):
        steps.rows(db, "SELECT * FROM pipeline.take_permits('shop', %s, %s, 0.25)", hold.job, calls)
    db.execute("SELECT pipeline.pause_rate_limit('shop', now() + interval '1 hour', 'breaker')")
    steps.submit(db, rate_limit="shop")
    steps.admit(db)
    db.execute("SELECT pipeline.resume_rate_limit('shop')")
    db.execute("SELECT pipeline.declare_rate_limit('x:{shop}', NULL, NULL), pipeline.unset_rate_limit('x:{shop}')")
    db.execute("UPDATE pipeline.phases SET rate_limit = 'x:{shop}', breaker = 'x:{shop}' WHERE queue = 'triple.second'")
    hold = steps.held(db, "triple", body={"shop": "a"})
    steps.complete(db, hold, continuing="triple.second")
    steps.rows(db, "SELECT * FROM pipeline.breaker_enter('x:a', %s, 60)", hold.job)
    db.execute("SELECT pipeline.breaker_failed('x:a', %s, 1, 5, 'away')", (hold.job,))
    db.execute("SELECT pipeline.breaker_succeeded('x:a')")
    for end in ("leave", "close"):
        db.execute("SELECT pipeline.breaker_open('x:a', %s, 0)", (hold.job,))
        steps.rows(db, "SELECT * FROM pipeline.breaker_enter('x:a', %s, 60)", hold.job)
        db.execute(f"SELECT pipeline.breaker_{end}('x:a', %s)", (hold.job,))
    db.execute("UPDATE pipeline.phases SET rate_limit = NULL, breaker = NULL WHERE queue = 'triple.second'")


def _turns(db: Db) -> None:
    db.execute("SELECT pipeline.set_key_weight('dripping', 'a', 2), pipeline.pause_key('dripping', 'b')")
    for _ in range(2):
        steps.submit(db, "dripping", {"customer": "a"})
    [sent] = steps.admit(db)
    steps.rows(db, "SELECT * FROM pipeline.next_due()")
    steps.complete(db, steps.Hold(sent["job_id"], steps.claim(db, sent["job_id"])["fence"]))
    db.execute("SELECT pipeline.resume_key('dripping', 'b')")


def _lost_workers(db: Db) -> None:
    number = steps.sign_on(db, "w2")
    hold, other = steps.held(db, "single", "w2"), steps.held(db, "single", "w2")
    steps.rows(db, "SELECT * FROM pipeline.heartbeat('w2', %s, %s, now(), '{\"done\": 1}')", [hold.job], [hold.fence])
    steps.die(db, number)
    assert steps.take_over(db, hold, "w1") == "claimed"
    assert [row["job_id"] for row in steps.reclaim(db)] == [other.job]
    steps.rows(db, "SELECT pipeline.refund_crash('w2', %s, %s)", [other.job], [other.fence])


def _operators(db: Db, number: int) -> None:
    running = steps.held(db, "single")
    assert steps.one(db, "SELECT pipeline.reset(%s, 'by hand')", running.job) == "reset"
    failed = [steps.held(db, "single") for _ in range(2)]
    for hold in failed:
        steps.fail(db, hold)
    assert len(steps.rows(db, "SELECT pipeline.replay_many(%s, 10)", [failed[0].job])) == 1
    assert steps.discard(db, failed[1].job)
    assert steps.one(db, "SELECT pipeline.delete(%s)", [failed[0].job]) == 1
    with pytest.raises(psycopg.Error, match="no phase"):
        db.execute("SELECT pipeline.move('single.gone', 'nowhere')")
    steps.rows(db, "SELECT * FROM pipeline.verify(true)")
    db.execute("UPDATE pipeline.workers SET stopped_at = now() - interval '2 days' WHERE no <> %s", (number,))
    steps.one(db, "SELECT pipeline.prune('0', 1000, '0')")
    assert steps.one(db, "SELECT pipeline.drain('nobody', true)") is False
    assert steps.one(db, "SELECT pipeline.record('ada', 'api', NULL, 'cancel')") > 0
    assert steps.one(db, "SELECT pipeline.prune_audit('0', 10)") in (0, 1)
    steps.fail(db, steps.held(db, "single"))
    bulk = "SELECT pipeline.begin_bulk('ada', 'api', NULL, 'replay', '{\"status\": \"failed\"}', 1)"
    number = steps.one(db, bulk)
    assert steps.one(db, "SELECT pipeline.step_bulk_actions(1)") < 1
    db.execute("INSERT INTO pipeline.bulk_held (action_id, job_id) VALUES (%s, %s)", (number, uuid4()))
    assert steps.one(db, "SELECT pipeline.step_bulk_actions(1)") < 1
    assert steps.one(db, "SELECT pipeline.step_bulk_actions(1)") == 3600
    assert steps.one(db, "SELECT pipeline.steer_bulk(%s, 'stopped')", number) is False
    steps.one(db, "SELECT pipeline.count_ended()")


def _reports(db: Db) -> None:
    hold = steps.held(db, "single")
    assert steps.fail(db, hold, "ValueError: no (shop.py:3)") == "failed"
    for report in (
        "stats()",
        "attempts_recent(60, 100)",
        "relay_lag()",
        "roll_up()",
        "list_jobs('single', NULL, NULL, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 10)",
        "dead_groups(NULL, 10, 100)",
        "find_jobs('single', NULL, 'failed', NULL, now() - interval '1 h', now(), NULL, 'no', NULL, 10)",
        f"keep_log('{hold.job}', {hold.fence}, 'x', 'y')",
        "undeclared()",
        "new_id()",
        f"timeline('{hold.job}')",
        f"timeline('{uuid4()}')",
        f"job_status(ARRAY['{hold.job}'::uuid])",
    ):
        steps.rows(db, f"SELECT * FROM pipeline.{report}")
    for view in ("running_jobs", "processors", "counters"):
        steps.rows(db, f"SELECT * FROM pipeline.{view}")
    steps.rows(db, "SELECT pipeline.worker_state(w) FROM pipeline.workers w")
