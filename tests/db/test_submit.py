"""pipeline.submit and submit_many."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.db import clock, steps, together
from tests.db.conftest import Connect
from tests.db.steps import Db

MANY = "SELECT pipeline.submit_many(%s, %s::jsonb[], p_keys => %s::text[], p_batch => %s) AS id"


def submit_many(db: Db, count: int, keys: list[str | None] | None = None, batch: object = None) -> list[Any]:
    bodies = [Jsonb({"n": n}) for n in range(count)]
    return [row["id"] for row in steps.rows(db, MANY, "single", bodies, keys, batch)]


def test_a_submitted_job_waits_to_be_sent(database: Db) -> None:
    """The job and the intent to send it are there together."""
    job_id = steps.submit(database, "triple", {"url": "x"}, priority=4)
    row = steps.job(database, job_id)
    assert (row["status"], row["phase"], row["priority"], row["body"]) == ("pending", "first", 4, {"url": "x"})
    assert (row["send"], row["fence"], row["attempts"], row["max_attempts"]) == (1, 0, 0, 3)
    waits = steps.waiting(database, job_id)
    assert waits is not None
    assert (waits["sent_at"], waits["due_at"], waits["priority"]) == (None, None, 4)


def test_a_thousand_jobs_are_one_round_trip_in_their_order(database: Db) -> None:
    """Ids come back in the order of the bodies, and are in the order of time."""
    found = submit_many(database, 1000)
    assert [steps.job(database, found[n])["body"]["n"] for n in (0, 1, 500, 999)] == [0, 1, 500, 999]
    assert steps.one(database, "SELECT count(*) FROM pipeline.outbox") == 1000


def test_a_rolled_back_submit_leaves_nothing(database: Db) -> None:
    """It lives and dies with the caller's transaction."""
    with steps.nothing_changes(database), database.transaction(force_rollback=True):
        steps.submit(database)


def test_a_scheduled_job_is_not_sent_before_its_time(database: Db) -> None:
    """It waits in PostgreSQL."""
    job_id = steps.submit(database, due=steps.FUTURE)
    assert steps.admit(database) == []
    clock.let_pass(database, steps.FUTURE + 1)
    assert [row["job_id"] for row in steps.admit(database)] == [job_id]


def test_a_job_joins_its_callers_trace(database: Db) -> None:
    """A malformed traceparent starts a trace of the job's own."""
    trace, span = "a" * 32, "b" * 16
    joined = steps.job(database, steps.submit(database, traceparent=f"00-{trace}-{span}-01"))
    own = steps.job(database, steps.submit(database, traceparent="nonsense"))
    assert (joined["trace_id"], joined["span_id"]) == (trace, span)
    assert own["trace_id"] == own["id"].hex


# ---- keys


def test_the_same_key_gives_the_same_job(database: Db) -> None:
    """Also when the job has ended, and within one call; another workflow's keys are its own."""
    first = steps.submit(database, key="k")
    steps.cancel(database, first)
    with steps.nothing_changes(database):
        assert steps.submit(database, key="k") == first
    assert steps.submit(database, "triple", key="k") != first
    a, b, again = submit_many(database, 3, ["a", "b", "a"])
    assert a == again != b


def test_a_job_without_a_key_among_keys_still_gets_its_id(database: Db) -> None:
    """Keys may be given for some jobs only."""
    found = submit_many(database, 3, ["a", None, "c"])
    assert None not in found
    assert len(set(found)) == 3


def test_two_callers_with_the_same_key_get_the_same_job(connect: Connect) -> None:
    """The second waits for the first one's commit and then learns its job's id."""
    one, two, watch = connect(), connect(), connect()
    with ThreadPoolExecutor(1) as pool:
        with one.transaction():
            first = steps.submit(one, key="k")
            second = pool.submit(steps.submit, two, key="k")
            together.until_blocked(watch, two.info.backend_pid)
        assert second.result(10) == first
    assert steps.one(watch, "SELECT count(*) FROM pipeline.jobs") == 1


def test_a_known_job_does_not_join_a_batch_a_second_time(database: Db) -> None:
    """A batch counts what it got; otherwise it would wait for ever for a child that it does not have."""
    batch = steps.open_batch(database)
    submit_many(database, 1, ["a"], batch)
    submit_many(database, 2, ["a", "b"], batch)
    row = steps.batch(database, batch)
    assert (row["total"], row["remaining"]) == (2, 2)


# ---- refusals


@pytest.mark.parametrize(
    ("values", "state", "said", "hint"),
    [
        (("nowhere", {}), "PL001", "unknown workflow 'nowhere'", "known workflows: "),
        (("single", {}, 10), "PL002", "priority 10 is outside 0", "9 goes first"),
        (("single", {}, -1), "PL002", "priority -1 is outside 0", "9 goes first"),
        (("single", []), "PL004", "body 1 is not a JSON object", "send an object"),
        (("single", None), "PL004", "body 1 is not a JSON object", "send an object"),
        (("single", {"x": "y" * 65536}), "PL005", "bytes, the limit is 65536", "send a reference"),
    ],
)
def test_a_wrong_submit_says_what_and_what_to_do(
    database: Db, values: tuple[Any, ...], state: str, said: str, hint: str
) -> None:
    """SQLSTATE, message and hint; nothing is written."""
    workflow, body, *priority = values
    with steps.nothing_changes(database), pytest.raises(psycopg.Error) as caught:
        database.execute("SELECT pipeline.submit(%s, %s, %s)", (workflow, Jsonb(body), *(priority or [0])))
    assert caught.value.sqlstate == state
    assert said in (caught.value.diag.message_primary or "")
    assert hint in (caught.value.diag.message_hint or "")


def test_a_body_at_the_limit_is_taken(database: Db) -> None:
    """64 KiB, as PostgreSQL prints it."""
    body = {"x": "y" * (65536 - len('{"x": ""}'))}
    assert steps.job(database, steps.submit(database, body=body))["body"] == body


def test_one_bad_body_refuses_them_all_and_names_its_place(database: Db) -> None:
    """Counting from one."""
    with steps.nothing_changes(database), pytest.raises(psycopg.Error, match="body 2 is not"):
        database.execute(MANY, ("single", [Jsonb({}), Jsonb(1)], None, None))


def test_a_job_whose_neighbours_key_is_taken_wakes_the_relay(database: Db, connect: Connect) -> None:
    """Ids of the same millisecond are in no order: the one that is left may look as if it waited behind another."""
    listener = connect()
    listener.execute("LISTEN pipeline_relay")
    statement = "SELECT pipeline.submit_many('single', ARRAY['{}', '{}']::jsonb[], p_keys => ARRAY['taken', %s])"
    steps.rows(database, "SELECT pipeline.submit('single', p_key => 'taken')")
    for n in range(20):
        steps.admit(database, asleep=True)
        steps.admit(database, asleep=True)
        list(listener.notifies(timeout=0))
        steps.rows(database, statement, str(n))
        assert list(listener.notifies(timeout=5, stop_after=1)), n


def test_no_bodies_are_no_jobs(database: Db) -> None:
    assert steps.rows(database, "SELECT pipeline.submit_many('single', NULL)") == []
    assert steps.rows(database, "SELECT pipeline.submit_many('single', '{}')") == []
