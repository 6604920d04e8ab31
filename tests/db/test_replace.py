"""unique => 'replace' and debounce: what was submitted last is what runs, and nothing that began is lost."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.db import clock, steps, together
from tests.db.conftest import Connect
from tests.db.steps import Db

CLIENTS = 32


def replace(db: Db, n: int, **options: Any) -> UUID:
    return steps.submit(db, body={"n": n}, key="k", unique="replace", **options)


def debounce(db: Db, n: int, seconds: float = 5.0) -> UUID:
    return steps.submit(db, body={"n": n}, key="k", debounce=seconds)


def send_and_claim(db: Db, job: UUID) -> UUID:
    """As the gate and a worker do: a claim that finds the row locked, here by a submit, is asked again."""
    for row in steps.admit(db):
        while steps.claim(db, row["job_id"])["verdict"] == "locked":
            pass
    return job


def test_a_job_that_waits_becomes_what_was_submitted_last(database: Db) -> None:
    """Body, priority, tags, expiry and time; it is the same job and keeps its place."""
    job = replace(database, 1, tags=["a", "b"], expires=60, due=50)
    seq = (steps.waiting(database, job) or {})["seq"]
    assert replace(database, 2, priority=7, tags=["b", "c"]) == job
    row, waits = steps.job(database, job), steps.waiting(database, job)
    assert (row["body"], row["priority"], row["tags"], row["expires_at"]) == ({"n": 2}, 7, ["b", "c"], None)
    assert waits is not None
    assert (waits["priority"], waits["seq"], waits["due_at"], waits["expires_at"]) == (7, seq, None, None)
    assert [r["tag"] for r in steps.rows(database, "SELECT tag FROM pipeline.tags ORDER BY 1")] == ["b", "c"]
    [sent] = steps.admit(database)
    assert (sent["job_id"], sent["body"]) == (job, {"n": 2})


def test_a_job_that_was_sent_or_has_begun_is_left_alone_and_a_new_one_has_the_key(database: Db) -> None:
    """No body is dropped: both run."""
    sent = replace(database, 1)
    steps.admit(database)
    begun = replace(database, 2)
    assert begun != sent
    steps.snooze(database, steps.hold(database, begun))
    waits = replace(database, 3)
    assert waits not in (sent, begun)
    assert replace(database, 4) == waits
    assert [steps.job(database, job)["body"]["n"] for job in (sent, begun, waits)] == [1, 2, 4]


def test_a_job_that_somebody_else_has_just_now_counts_as_sent(database: Db, connect: Connect) -> None:
    """The gate in an open transaction: the submit does not wait for it, and none of the job's rows stays locked."""
    job, gate, claims = replace(database, 1), connect(), connect()
    with gate.transaction():
        [sent] = steps.admit(gate)
        with database.transaction():
            assert replace(database, 2) != job
            assert steps.rows(claims, "SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE NOWAIT", job)
    assert (sent["job_id"], sent["body"]) == (job, {"n": 1})


def test_the_gate_and_a_claim_pass_by_a_job_that_is_being_replaced(database: Db, connect: Connect) -> None:
    """They see the new body, or the old one after a rollback."""
    job, other = replace(database, 1), connect()
    with other.transaction():
        assert replace(other, 2) == job
        assert steps.admit(database) == []
        assert steps.claim(database, job)["verdict"] == "locked"
    [sent] = steps.admit(database)
    assert sent["body"] == {"n": 2}


def test_thirty_two_clients_replace_one_job(connect: Connect, database: Db) -> None:
    """One job, the same answer for all, and the body of one of them."""
    [job] = set(together.at_once([partial(replace, connect(), n) for n in range(CLIENTS)]))
    [again] = set(together.at_once([partial(replace, connect(), n) for n in range(CLIENTS, 2 * CLIENTS)]))
    assert again == job and steps.job(database, job)["body"]["n"] >= CLIENTS
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs") == 1


def test_replacing_against_the_gate_and_claims_drops_no_body(connect: Connect, database: Db) -> None:
    """Every client's body is in a job, or the same job has one that was submitted later."""
    for _ in range(5):
        first = replace(database, 0)
        works = [
            partial(send_and_claim, connect(), first),
            *(partial(replace, connect(), n) for n in range(1, CLIENTS)),
        ]
        answers = together.at_once(works)
        found = steps.rows(database, "SELECT id, body, fence FROM pipeline.jobs WHERE completed_at IS NULL")
        # All that came after the gate share one job: a client either replaced the first, or waits in the second.
        assert {row["id"] for row in found} == set(answers) and len(found) <= 2
        assert all(row["body"]["n"] > 0 for row in found if row["fence"] == 0)
        database.execute("SELECT pipeline.cancel_many(%s)", ([row["id"] for row in found],))


def test_a_debounced_job_is_due_after_the_last_submit(database: Db) -> None:
    """With the last body."""
    job = debounce(database, 1)
    clock.let_pass(database, 4)
    assert debounce(database, 2) == job
    clock.let_pass(database, 4)
    assert steps.admit(database) == []
    clock.let_pass(database, 2)
    [sent] = steps.admit(database)
    assert (sent["job_id"], sent["body"]) == (job, {"n": 2})
    assert debounce(database, 3) != job


def test_thirty_two_clients_debounce_one_job(connect: Connect, database: Db) -> None:
    """Without a key, by their body."""
    works = [partial(steps.submit, connect(), body={"x": 1}, debounce=60.0) for _ in range(CLIENTS)]
    [job] = set(together.at_once(works))
    assert (steps.waiting(database, job) or {})["reason"] == "scheduled"
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs") == 1


def test_a_job_of_a_rate_limit_waits_for_it_again(database: Db) -> None:
    """What was replaced is let through like a new one."""
    database.execute("SELECT pipeline.set_rate_limit('api', 1)")
    job = replace(database, 1, rate_limit="api", due=50)
    assert replace(database, 2, rate_limit="api") == job
    assert (steps.waiting(database, job) or {})["reason"] == "rate_limit"
    assert [row["job_id"] for row in steps.admit(database)] == [job]


def test_debounce_and_unique_exclude_each_other(database: Db) -> None:
    """As does a debounce of nothing."""
    for options in ({"unique": "open", "debounce": 1.0}, {"debounce": 0.0}, {"debounce": -1.0}):
        with steps.nothing_changes(database), pytest.raises(psycopg.Error, match="debounce") as caught:
            steps.submit(database, key="k", **options)
        assert caught.value.sqlstate == "PL009"
