"""Rates, weights and pauses of keys, and keys beside rate limits and replaced jobs."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

from tests.db import clock, steps
from tests.db.steps import Db
from tests.db.test_turns import claimed, finish, many, next_due, sent, states


def test_jobs_of_a_key_begin_at_its_rate_also_after_a_stall(database: Db) -> None:
    """Five a second, each key for itself."""
    many(database, "dripping", "a", 50)
    many(database, "dripping", "b", 1)
    assert Counter(sent(database)) == {"a": 1, "b": 1}
    assert sent(database) == []
    seconds, _ = next_due(database)
    assert seconds is not None and 0 < seconds <= 0.2
    clock.let_pass(database, 0.21)
    assert sent(database) == ["a"]
    clock.let_pass(database, 60)
    assert sent(database) == ["a"] and sent(database) == []


def test_a_heavier_key_has_more_jobs_in_its_turn(database: Db) -> None:
    database.execute("SELECT pipeline.set_key_weight('fair', 'gold', 3)")
    for name in ("gold", "iron", "zinc"):
        many(database, "fair", name, 300)
    total: Counter[str] = Counter()
    for _ in range(4):
        for row in steps.admit(database):
            total[row["body"]["customer"]] += 1
            finish(database, claimed(database, row["job_id"]))
    assert 2.5 < total["gold"] / total["iron"] < 3.5 and abs(total["iron"] - total["zinc"]) <= 20


def test_a_paused_key_begins_nothing_until_it_is_resumed(database: Db) -> None:
    many(database, "fair", "a", 2)
    many(database, "fair", "b", 2)
    database.execute("SELECT pipeline.pause_key('fair', 'a')")
    assert sent(database) == ["b", "b"]
    assert steps.one(database, "SELECT pipeline.resume_key('fair', 'a')") is True
    assert sent(database) == ["a", "a"]
    assert steps.one(database, "SELECT pipeline.resume_key('fair', 'a')") is False


def test_a_workflow_without_keys_has_none_to_steer(database: Db) -> None:
    with pytest.raises(psycopg.Error, match="has no keys"):
        database.execute("SELECT pipeline.pause_key('single', 'a')")
    with pytest.raises(psycopg.Error, match="weight 0 is outside"):
        database.execute("SELECT pipeline.set_key_weight('fair', 'a', 0)")


def test_a_job_under_a_rate_limit_waits_for_its_turn_first(database: Db) -> None:
    """Whoever has a turn waits for the limit; the keys decide who that is."""
    database.execute("SELECT pipeline.set_rate_limit('api', 0.01, 1)")
    jobs = [steps.submit(database, "shared", {"customer": "a"}, rate_limit="api") for _ in range(4)]
    assert [row["job_id"] for row in steps.admit(database)] == jobs[:1]
    assert states(database, "shared") == {"queued": 1, "rate_limit": 1, "key": 2}
    finish(database, claimed(database, jobs[0]), following={"finish": True})
    sent(database)
    assert states(database, "shared") == {"succeeded": 1, "queued": 1, "rate_limit": 1, "key": 1}


def test_a_job_that_is_replaced_has_the_key_of_its_new_body(database: Db) -> None:
    many(database, "shared", "a", 2)
    sent(database)
    job = steps.submit(database, "shared", {"customer": "a"}, key="k", unique="replace")
    assert steps.submit(database, "shared", {"customer": "b"}, key="k", unique="replace") == job
    assert sent(database) == ["b"]


def test_a_missing_key_is_the_empty_one_and_a_long_one_is_a_digest(database: Db) -> None:
    database.execute("SELECT pipeline.submit('shared', '{}'), pipeline.submit('shared', '{\"customer\": null}')")
    database.execute(
        "SELECT pipeline.submit('shared', '{}'), pipeline.submit('shared', jsonb_build_object('customer', repeat('x', 5000)))"
    )
    found = Counter(row["key"] for row in steps.rows(database, "SELECT key FROM pipeline.outbox"))
    assert found[""] == 3 and all(len(key) < 80 for key in found)
    assert len(steps.admit(database)) == 3
