"""claim."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.db import steps, together
from tests.db.conftest import Connect
from tests.db.steps import Db


def test_a_claim_takes_the_job_under_a_new_fence(database: Db) -> None:
    """It runs, its outbox row stays marked as sent, and the answer holds all that the phase needs."""
    job_id = steps.submit(database, body={"url": "x"})
    steps.admit(database)
    answer = steps.claim(database, job_id)
    row = steps.job(database, job_id)
    assert (answer["verdict"], answer["fence"], answer["body"], answer["attempts"]) == ("claimed", 1, {"url": "x"}, 0)
    assert (row["status"], row["locked_by"], row["fence"], row["send"]) == ("running", "w1", 1, 1)
    assert row["locked_at"] == row["heartbeat_at"] is not None
    waits = steps.waiting(database, job_id)
    assert waits is not None and waits["sent_at"] is not None


def test_a_claim_repeated_by_its_delivery_gets_the_same_answer(database: Db) -> None:
    """The first COMMIT was lost on the way; nothing may be counted twice."""
    job_id, delivery = steps.submit(database), 7
    steps.admit(database)
    first = steps.claim(database, job_id, delivery=delivery)
    with steps.nothing_changes(database):
        again = steps.claim(database, job_id, delivery=delivery)
    assert {**again, "holder": None} == first
    assert again["holder"] == "w1"


def test_a_job_in_another_workers_hands_stays_there(database: Db) -> None:
    """The answer names the holder and its fence, so that the asker can look whether it lives."""
    hold = steps.held(database)
    with steps.nothing_changes(database):
        answer = steps.claim(database, hold.job, "w2")
    assert (answer["verdict"], answer["holder"], answer["fence"], answer["body"]) == ("running", "w1", 1, None)


@pytest.mark.parametrize("step", [-1, 1, 100])
def test_a_message_with_another_send_number_is_superseded(database: Db, step: int) -> None:
    """Rule 1: never claimed, never a takeover."""
    waits, runs = steps.submit(database), steps.held(database).job
    for job_id in (waits, runs):
        with steps.nothing_changes(database):
            answer = steps.claim(database, job_id, "w2", send=steps.job(database, job_id)["send"] + step)
        assert answer["verdict"] == "superseded"


def test_a_bare_message_is_adopted_only_while_its_job_waits_unsent(database: Db) -> None:
    """Once a token is out, a bare message is a duplicate."""
    free, queued, later = steps.submit(database), steps.submit(database), steps.submit(database, due=steps.FUTURE)
    database.execute("UPDATE pipeline.outbox SET sent_at = now() WHERE job_id = %s", (queued,))
    for job_id in (queued, later):
        with steps.nothing_changes(database):
            assert steps.claim(database, job_id, send=None)["verdict"] == "already_queued"
    assert steps.claim(database, free, send=None)["verdict"] == "claimed"


def test_a_job_that_has_ended_is_not_claimed(database: Db) -> None:
    """Each end has its word; only the failed job's own token may revive it."""
    done, gone, bad = steps.held(database), steps.held(database), steps.held(database)
    steps.complete(database, done)
    steps.cancel(database, gone.job)
    steps.fail(database, bad)
    with steps.nothing_changes(database):
        assert steps.claim(database, done.job)["verdict"] == "finished"
        assert steps.claim(database, gone.job)["verdict"] == "cancelled"
        assert steps.claim(database, bad.job)["verdict"] == "failed"
        assert steps.claim(database, bad.job, send=None)["verdict"] == "finished"
        assert steps.claim(database, bad.job, send=99)["verdict"] == "superseded"


def test_a_message_in_the_wrong_queue_and_an_unknown_job_are_refused(database: Db) -> None:
    """By phase, by workflow, by name."""
    job_id = steps.submit(database, "triple")
    queues = ("triple.second", "single.act", "nowhere.at-all")
    asks = [(job_id, queue, 1, 7) for queue in queues] + [(uuid4(), "triple.first", 1, 7)]
    with steps.nothing_changes(database):
        verdicts = [row["verdict"] for row in steps.claim_all(database, asks)]
    assert verdicts == ["other_phase"] * 3 + ["unknown_job"]


def test_every_ask_is_answered_in_its_place(database: Db) -> None:
    """Threads get their own answers."""
    jobs = [steps.submit(database) for _ in range(5)]
    steps.admit(database)
    answers = steps.claim_all(database, [steps.ask(database, job_id) for job_id in reversed(jobs)])
    assert [row["place"] for row in answers] == [1, 2, 3, 4, 5]
    assert {row["verdict"] for row in answers} == {"claimed"}


def test_two_deliveries_of_one_job_in_one_batch_go_to_the_first(database: Db) -> None:
    """Each row goes to one delivery."""
    job_id = steps.submit(database)
    steps.admit(database)
    first, second = steps.claim_all(database, [steps.ask(database, job_id), steps.ask(database, job_id)])
    assert (first["verdict"], second["verdict"]) == ("claimed", "running")
    assert steps.job(database, job_id)["fence"] == 1


def test_a_stale_duplicate_in_the_same_batch_is_not_in_the_tokens_way(database: Db) -> None:
    """The job is free: its one true token gets it, wherever it stands in the batch."""
    job_id = steps.submit(database)
    steps.admit(database)
    steps.unsend(database, job_id, 1)
    steps.admit(database)
    stale, token = steps.ask(database, job_id, send=1), steps.ask(database, job_id, send=2)
    assert [row["verdict"] for row in steps.claim_all(database, [stale, token])] == ["superseded", "claimed"]


# ---- pools


def test_a_full_pool_sends_the_job_back_to_wait_under_a_new_number(database: Db) -> None:
    """The message is acknowledged; its job waits in PostgreSQL at no cost."""
    for slot in (1, 2, 3):
        assert steps.processor(database, steps.held(database, "pooled").job) == slot
    job_id = steps.submit(database, "pooled")
    database.execute("UPDATE pipeline.outbox SET sent_at = now(), sent_by = 1")
    assert steps.claim(database, job_id)["verdict"] == "pool_full"
    row, waits = steps.job(database, job_id), steps.waiting(database, job_id)
    assert (row["status"], row["send"], row["fence"], row["attempts"]) == ("pending", 2, 0, 0)
    assert waits is not None
    assert (waits["sent_at"], waits["reason"]) == (None, "pool_full")


def test_a_batch_gets_what_fits_into_the_pool(database: Db) -> None:
    """Five ask, three fit."""
    jobs = [steps.submit(database, "pooled") for _ in range(5)]
    answers = steps.claim_all(database, [steps.ask(database, job_id) for job_id in jobs])
    assert sorted(row["verdict"] for row in answers) == ["claimed"] * 3 + ["pool_full"] * 2
    processors = [steps.processor(database, job_id) for job_id in jobs]
    assert sorted(number for number in processors if number) == [1, 2, 3]


def test_a_freed_processor_is_given_out_again(database: Db) -> None:
    """The lowest free number first."""
    holds = [steps.held(database, "pooled") for _ in range(3)]
    steps.complete(database, holds[1])
    assert steps.processor(database, steps.held(database, "pooled").job) == 2


def test_concurrent_claims_never_exceed_the_pool(connect: Connect) -> None:
    """Four processes ask for twelve jobs at once: three run, each on a processor of its own."""
    connections = [connect() for _ in range(4)]
    jobs = [steps.submit(connections[0], "pooled") for _ in range(12)]
    asks = [[steps.ask(connections[0], job_id) for job_id in jobs[n::4]] for n in range(4)]
    answers = together.at_once(
        [lambda n=n: steps.claim_all(connections[n], asks[n], f"w{n}") for n in range(4)]  # type: ignore[misc]
    )
    verdicts = [row["verdict"] for found in answers for row in found]
    assert (verdicts.count("claimed"), verdicts.count("pool_full")) == (3, 9)
    taken = "SELECT number FROM pipeline.places WHERE job_id IS NOT NULL ORDER BY number"
    assert [row["number"] for row in steps.rows(connections[0], taken)] == [1, 2, 3]


def test_concurrent_claims_of_the_same_jobs_give_each_to_one(connect: Connect) -> None:
    """Rows are locked in id order: nobody deadlocks and nobody shares."""
    connections = [connect() for _ in range(4)]
    jobs = [steps.submit(connections[0]) for _ in range(20)]
    steps.admit(connections[0])
    asks = [steps.ask(connections[0], job_id) for job_id in jobs]
    answers = together.at_once(
        [lambda n=n: steps.claim_all(connections[n], asks[:: 1 if n % 2 else -1], f"w{n}") for n in range(4)]  # type: ignore[misc]
    )
    assert sum(row["verdict"] == "claimed" for found in answers for row in found) == 20
    assert steps.one(connections[0], "SELECT count(*) FROM pipeline.jobs WHERE status = 'running' AND fence = 1") == 20
