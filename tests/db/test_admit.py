"""pipeline.admit: the one gate."""

from __future__ import annotations

import pytest

from tests.db import steps, together
from tests.db.conftest import Connect
from tests.db.steps import Db


def test_what_waits_is_marked_sent_and_described(database: Db) -> None:
    """The answer holds what the envelope needs, and the row who sent it."""
    job_id = steps.submit(database, body={"url": "x"}, priority=2)
    [sent] = steps.admit(database, sender=7)
    assert (sent["job_id"], sent["queue"], sent["actor"], sent["send"]) == (job_id, "single.act", "single.act", 1)
    assert (sent["attempt"], sent["max_attempts"], sent["priority"], sent["body"]) == (1, 3, 2, {"url": "x"})
    waits = steps.waiting(database, job_id)
    assert waits is not None
    assert (waits["sent_at"], waits["sent_by"]) == (sent["sent_at"], 7)


def test_what_was_sent_is_not_sent_again(database: Db) -> None:
    """And nothing is written when there is nothing to send."""
    steps.submit(database)
    steps.admit(database)
    with steps.nothing_changes(database):
        assert steps.admit(database) == []


def test_the_highest_priority_goes_first_and_then_the_oldest(database: Db) -> None:
    """G9."""
    jobs = [steps.submit(database, priority=priority) for priority in (0, 5, 0, 9, 5)]
    expected = [jobs[n] for n in (3, 1, 4, 0, 2)]
    assert [row["job_id"] for row in steps.admit(database, 2)] == expected[:2]
    assert [row["job_id"] for row in steps.admit(database)] == expected[2:]


def test_no_more_are_sent_than_the_queue_holds(database: Db) -> None:
    """G8: what a claim takes out makes room for the next."""
    jobs = [steps.submit(database, "small") for _ in range(8)]
    assert [row["job_id"] for row in steps.admit(database)] == jobs[:5]
    assert steps.admit(database) == []
    steps.claim(database, jobs[0])
    assert [row["job_id"] for row in steps.admit(database)] == [jobs[5]]


def test_no_more_are_sent_than_the_pool_has_free_processors(database: Db) -> None:
    """A message in the queue and a running job both take one."""
    steps.held(database, "pooled")
    jobs = [steps.submit(database, "pooled") for _ in range(4)]
    assert [row["job_id"] for row in steps.admit(database)] == jobs[:2]
    steps.claim(database, jobs[0])
    assert steps.admit(database) == []


def test_a_full_queue_does_not_hold_up_the_others(database: Db) -> None:
    """Each phase has its own room."""
    for _ in range(6):
        steps.submit(database, "small")
    other = steps.submit(database)
    assert other in [row["job_id"] for row in steps.admit(database)]


def test_two_relays_share_the_rows_and_never_a_row(connect: Connect) -> None:
    """They do no harm: each job goes to one of them, and each of them loses nobody's."""
    relays = [connect() for _ in range(3)]
    jobs = {steps.submit(relays[0]) for _ in range(60)}

    def drain(relay: Db) -> list[object]:
        found: list[object] = []
        while batch := steps.admit(relay, 7):
            found += [row["job_id"] for row in batch]
        return found

    answers = together.at_once([lambda relay=relay: drain(relay) for relay in relays])  # type: ignore[misc]
    sent = [job_id for found in answers for job_id in found]
    sent += [row["job_id"] for row in steps.admit(relays[0])]
    assert len(sent) == len(set(sent)) == 60
    assert set(sent) == jobs


def test_a_relay_does_not_wait_for_one_that_is_at_work(connect: Connect) -> None:
    """SKIP LOCKED: the second takes what the first has not. (Where a throttle counts, they take turns.)"""
    one, two = connect(), connect()
    one.execute("DELETE FROM pipeline.phases WHERE throttle_count IS NOT NULL")
    jobs = [steps.submit(one) for _ in range(4)]
    with one.transaction():
        first = steps.admit(one, 2)
        second = steps.admit(two, 2)
    assert [row["job_id"] for row in first + second] == jobs


MANY = "SELECT count(*) FROM pipeline.submit_many('single', ARRAY(SELECT '{}'::jsonb FROM generate_series(1, %s)))"
# As the engine's own connections are.
ENGINE = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off"
READ = """SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::integer
    FROM pg_stat_xact_user_tables WHERE relname IN ('jobs', 'outbox')"""


@pytest.mark.parametrize("analysed", ["full", "empty"])
def test_the_gate_reads_no_more_than_it_sends(database: Db, analysed: str) -> None:
    """However many wait, and whatever the planner believes of them: it plans neither to send nor to read them all."""
    database.execute(ENGINE)
    tables = "VACUUM ANALYZE pipeline.jobs, pipeline.outbox, pipeline.phases"
    if analysed == "empty":
        steps.rows(database, MANY, 5000)
        database.execute("DELETE FROM pipeline.jobs")
        database.execute("DELETE FROM pipeline.outbox")
        database.execute(tables)
    steps.rows(database, MANY, 5000)
    if analysed == "full":
        database.execute(tables)
    for _ in range(2):
        with database.transaction():
            before = steps.one(database, READ)
            assert len(steps.admit(database, 50)) == 50
            # Picked, marked and described; counted, and looked at whether anybody waits.
            assert steps.one(database, READ) - before < 50 * 6
