"""Keys: one job of a workflow has one, for as long as its submit said (pipeline.take_keys)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.db import clock, steps, together
from tests.db.conftest import Connect
from tests.db.steps import Db

CLIENTS = 32
HOUR = "1 hour"
MANY = "SELECT pipeline.submit_many('single', %s::jsonb[], p_keys => %s::text[], p_unique => %s) AS id"


def submit_many(
    db: Db, keys: list[str | None] | None, unique: str | None = "open", count: int | None = None
) -> list[UUID]:
    bodies = [Jsonb({"n": n}) for n in range(len(keys or []) if count is None else count)]
    return [row["id"] for row in steps.rows(db, MANY, bodies, keys, unique)]


@pytest.fixture
def clients(connect: Connect) -> list[Db]:
    return [connect() for _ in range(CLIENTS)]


def raced(clients: list[Db], **options: Any) -> set[UUID]:
    """The answers to clients that submit the same at the same moment."""
    return set(together.at_once([partial(steps.submit, client, **options) for client in clients]))


def succeed(db: Db, job: UUID) -> None:
    steps.complete(db, steps.hold(db, job))


def fail(db: Db, job: UUID) -> None:
    steps.fail(db, steps.hold(db, job))


def poison(db: Db, job: UUID) -> None:
    for _ in range(3):
        steps.crash(db, steps.hold(db, job))


def exhaust(db: Db, job: UUID) -> None:
    for _ in range(3):
        steps.retry(db, steps.hold(db, job))


def give_up(db: Db, job: UUID) -> None:
    steps.undeliverable(db, job, steps.job(db, job)["send"])


def cancel(db: Db, job: UUID) -> None:
    assert steps.cancel(db, job)


def delete(db: Db, job: UUID) -> None:
    assert steps.one(db, "SELECT pipeline.delete(%s)", [job]) == 1


def expire(db: Db, job: UUID) -> None:
    db.execute("UPDATE pipeline.jobs SET expires_at = now() WHERE id = %s", (job,))
    assert steps.expire(db, job) == 1


ENDS = [succeed, fail, exhaust, poison, give_up, cancel, delete, expire]

# ---- open


def test_an_unfinished_job_is_the_answer_wherever_it_is(database: Db) -> None:
    """It waits, runs, backs off: it is the same job; its body stays its own."""
    job = steps.submit(database, body={"n": 1}, key="k", unique="open")
    hold = steps.hold(database, job)
    assert steps.submit(database, body={"n": 2}, key="k", unique="open") == job
    steps.retry(database, hold, steps.FUTURE)
    assert steps.submit(database, key="k", unique="open") == job
    assert steps.job(database, job)["body"] == {"n": 1}
    assert steps.submit(database, "triple", key="k", unique="open") != job


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_job_frees_its_key_in_the_same_transaction(
    database: Db, connect: Connect, end: Callable[[Db, UUID], None]
) -> None:
    """However it ends. A submit beside it gets a new job at once, one elsewhere with the commit; nobody waits."""
    job, other = steps.submit(database, key="k", unique="open"), connect()
    with database.transaction(force_rollback=True):
        end(database, job)
        assert steps.submit(database, key="k", unique="open") != job
        assert steps.submit(other, key="k", unique="open") == job
    assert steps.submit(database, key="k", unique="open") == job
    end(database, job)
    fresh = steps.submit(other, key="k", unique="open")
    assert fresh != job
    assert steps.submit(database, key="k", unique="open") == fresh


def test_a_job_that_fails_only_for_now_keeps_its_key(database: Db) -> None:
    """Nor does a hand-over free it."""
    job = steps.submit(database, "triple", key="k", unique="open")
    steps.complete(database, steps.hold(database, job))
    steps.crash(database, steps.hold(database, job))
    assert steps.submit(database, "triple", key="k", unique="open") == job


def test_without_a_key_the_body_is_the_key(database: Db) -> None:
    """As jsonb has it: the order of names and spaces are nothing. Another body is another job."""
    job = steps.one(database, """SELECT pipeline.submit('single', '{"a": 1, "b": 2}', p_unique => 'open')""")
    assert steps.one(database, """SELECT pipeline.submit('single', '{"b":2,"a":1}', p_unique => 'open')""") == job
    assert steps.submit(database, body={"a": 1}, unique="open") != job
    first, second, again, keyed = submit_many(database, [None, None, None, "k"])[:4]
    assert len({first, second, again, keyed}) == 4
    assert steps.job(database, job)["idempotency_key"].startswith("body:")


def test_thirty_two_clients_get_one_open_job(clients: list[Db], database: Db) -> None:
    """While it is new, and when the last one has just ended."""
    for _ in range(5):
        [job] = raced(clients, key="k", unique="open")
        succeed(database, job)
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs") == 5


def test_submits_against_an_end_get_the_old_job_or_one_new_one(
    clients: list[Db], connect: Connect, database: Db
) -> None:
    """Never two new ones, and never none."""
    worker = connect()
    for _ in range(5):
        hold = steps.held(database, key="k", unique="open")
        works: list[Callable[[], Any]] = [partial(steps.complete, worker, hold)]
        works += [partial(steps.submit, client, key="k", unique="open") for client in clients]
        _, *answers = together.at_once(works)
        fresh = steps.submit(database, key="k", unique="open")
        assert set(answers) <= {hold.job, fresh}
        succeed(database, fresh)


def test_a_rolled_back_submit_leaves_no_key(database: Db, connect: Connect) -> None:
    """Nor does one that took the key of a job that had ended; and who waited for it gets it."""
    other, watch = connect(), connect()
    with steps.nothing_changes(database), database.transaction(force_rollback=True):
        steps.submit(database, key="k", unique="open")
    job = steps.submit(database, key="k", unique="open")
    cancel(database, job)
    with ThreadPoolExecutor(1) as pool:
        with database.transaction(force_rollback=True):
            gone = steps.submit(database, key="k", unique="open")
            waits = pool.submit(steps.submit, other, key="k", unique="open")
            together.until_blocked(watch, other.info.backend_pid)
        assert waits.result(10) not in (job, gone)


def test_no_transaction_that_ends_a_job_waits_for_a_submit_nor_a_submit_for_it(database: Db, connect: Connect) -> None:
    """G10: an application that took the key keeps its transaction open; another one's cancel is open as well."""
    one, two = connect(), connect()
    hold = steps.held(database, key="k", unique="open")
    with one.transaction(), two.transaction():
        assert steps.submit(one, key="k", unique="replace") != hold.job
        assert steps.complete(database, hold)["verdict"] == "done"
        other = steps.submit(database, key="other", unique="open")
        steps.cancel(two, other)
        assert steps.submit(database, key="other", unique="open") == other


# ---- a time


def test_a_job_keeps_its_key_for_its_time_whatever_becomes_of_it(database: Db) -> None:
    """Counted from the job that got it, not from the last submit."""
    job = steps.submit(database, key="k", unique=HOUR)
    succeed(database, job)
    clock.let_pass(database, 3000)
    assert steps.submit(database, key="k", unique=HOUR) == job
    clock.let_pass(database, 601)
    fresh = steps.submit(database, key="k", unique=HOUR)
    assert fresh != job
    assert steps.submit(database, key="k", unique="2 hours") == fresh


def test_a_time_that_is_over_is_taken_by_one_of_many(clients: list[Db], database: Db) -> None:
    """Also if the job is still unfinished."""
    job = steps.submit(database, key="k", unique=HOUR)
    for _ in range(3):
        clock.let_pass(database, 3601)
        [fresh] = raced(clients, key="k", unique=HOUR)
        assert fresh != job
        job = fresh
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs") == 4


# ---- many at once


def test_two_batches_with_the_same_keys_in_opposite_order_do_not_wait_in_a_circle(
    connect: Connect, database: Db
) -> None:
    """New keys, free ones and both together; each client gets the same job for a key."""
    keys: list[str | None] = [f"k{n}" for n in range(200)]
    for used in (0, 0, 100, 200):
        for job in submit_many(database, keys[:used]):
            steps.cancel(database, job)
        works = [partial(submit_many, connect(), order) for order in (keys, keys[::-1]) * 4]
        answers = together.at_once(works)
        found = {tuple(answer if n % 2 == 0 else answer[::-1]) for n, answer in enumerate(answers)}
        assert len(found) == 1
        database.execute("SELECT pipeline.cancel_many(%s)", (answers[0],))


def test_the_same_key_twice_in_one_call_is_one_job(database: Db) -> None:
    """The first body is its body; with 'replace' the last."""
    a, b, again = submit_many(database, ["a", "b", "a"])
    assert a == again != b
    assert steps.job(database, a)["body"] == {"n": 0}
    c, d, last = submit_many(database, ["c", "d", "c"], "replace")
    assert c == last != d
    assert steps.job(database, c)["body"] == {"n": 2}
    assert steps.one(database, "SELECT count(*) FROM pipeline.outbox") == 4


def test_a_job_of_a_batch_that_is_known_counts_in_none(database: Db) -> None:
    """A batch waits for its own children only."""
    steps.submit(database, key="k", unique="open")
    batch = steps.open_batch(database)
    steps.submit(database, key="k", unique="open", batch=batch)
    assert steps.batch(database, batch)["total"] == 0


# ---- leaving


def test_a_key_goes_with_its_job_and_stays_with_its_next_one(database: Db) -> None:
    """Deleted or pruned."""
    old = steps.submit(database, key="k", unique="open")
    succeed(database, old)
    fresh = steps.submit(database, key="k", unique="open")
    delete(database, old)
    assert steps.submit(database, key="k", unique="open") == fresh
    delete(database, fresh)
    assert steps.rows(database, "SELECT * FROM pipeline.keys") == []


def test_a_job_without_a_key_writes_none(database: Db) -> None:
    """And pays for none."""
    steps.submit(database)
    assert steps.rows(database, "SELECT * FROM pipeline.keys") == []


@pytest.mark.parametrize("keys", [["a"], ["a", "b", "c"], [], ["a", ""], ["a", "k" * 501]])
def test_keys_that_fit_no_bodies_are_refused(database: Db, keys: list[str | None]) -> None:
    """SQLSTATE PL010: a body without its key would be submitted twice."""
    with steps.nothing_changes(database), pytest.raises(psycopg.Error) as caught:
        steps.rows(database, MANY, [Jsonb({}), Jsonb({})], keys, "open")
    assert caught.value.sqlstate == "PL010"


@pytest.mark.parametrize("unique", ["", "closed", "0 s", "-1 hour", "hour"])
def test_what_is_no_rule_is_refused_with_the_rules(database: Db, unique: str) -> None:
    """SQLSTATE PL009."""
    with steps.nothing_changes(database), pytest.raises(psycopg.Error) as caught:
        steps.submit(database, key="k", unique=unique)
    assert caught.value.sqlstate == "PL009" and "'1 hour'" in (caught.value.diag.message_hint or "")
