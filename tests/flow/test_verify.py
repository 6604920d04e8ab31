"""pipeline verify: each thing that does not add up is found and repaired, and a second run finds nothing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest
from pika import BlockingConnection

from pipeline import settings, submit, submit_many
from pipeline.journey.submit import open_batch, seal_batch
from pipeline.maintenance.verify import Finding, verify
from tests.place import Place

JOBS = 6


def check(place: Place, problem: str, times: int = 1) -> list[Finding]:
    """Found by a dry run, repaired by the next, gone after that."""
    dry = verify(settings.get(), repair=False)
    assert [one.problem for one in dry] == [problem] * times
    assert not any(one.repaired for one in dry)
    repaired = verify(settings.get(), repair=True)
    assert [(one.problem, one.repaired) for one in repaired] == [(problem, True)] * times
    return repaired


def sent(place: Place, workflow: str = "single", **options: Any) -> list[UUID]:
    """Jobs whose messages are in the broker, and no worker to take them."""
    worker = place.worker(queues=("nothing",))
    jobs = submit_many(None, workflow, [{}] * JOBS, **options)
    queue = f"{workflow}.act"
    place.until(lambda: place.depth(queue) == JOBS, what="the messages to arrive")
    worker.terminate()
    worker.wait()
    return jobs


def test_a_purged_queue_is_filled_again(place: Place, rabbitmq: BlockingConnection) -> None:
    """Every job that waited in it is sent again, and ends."""
    jobs = sent(place)
    rabbitmq.channel().queue_purge("single.act")
    check(place, "queue that lost messages")
    place.worker()
    assert {row["status"] for row in place.finished(*jobs)} == {"succeeded"}
    assert verify(settings.get(), repair=True) == []


def test_some_messages_gone_are_noticed(place: Place, rabbitmq: BlockingConnection) -> None:
    """Two of six."""
    jobs = sent(place)
    channel = rabbitmq.channel()
    for _ in range(2):
        channel.basic_get("single.act", auto_ack=True)
    [finding] = check(place, "queue that lost messages")
    assert finding.detail == "6 sent, RabbitMQ has 4"
    place.worker()
    place.finished(*jobs)
    assert len(place.executions()) == JOBS


def test_a_wiped_broker_is_filled_again(place: Place, rabbitmq: BlockingConnection) -> None:
    """The queues themselves are gone."""
    jobs = sent(place)
    rabbitmq.channel().queue_delete("single.act")
    check(place, "queue that lost messages")
    place.worker()
    place.finished(*jobs)


def test_a_dead_workers_job_is_given_back(place: Place) -> None:
    """The row says running, and nobody runs it."""
    [job] = submit_many(None, "single", [{}])
    place.db.execute("INSERT INTO pipeline.workers (id, host, pid, threads, queues) VALUES ('gone', 'h', 1, 1, '{}')")
    place.db.execute("SELECT * FROM pipeline.admit(1, 10)")
    place.db.execute("SELECT * FROM pipeline.claim('gone', %s, '{single.act}', '{1}', '{1}', '{NULL}')", ([job],))
    check(place, "runs under a dead worker")
    assert (place.job(job)["status"], place.job(job)["crashes"]) == ("pending", 1)
    assert verify(settings.get(), repair=True) == []


def test_rows_edited_by_hand_are_made_whole(place: Place) -> None:
    """A job that waits without an outbox row, and one that waits before the wrong phase."""
    lost, astray = submit_many(None, "triple", [{}, {}])
    place.db.execute("DELETE FROM pipeline.outbox WHERE job_id = %s", (lost,))
    check(place, "waits without an intent to send")
    place.db.execute("UPDATE pipeline.jobs SET phase = 'third' WHERE id = %s", (astray,))
    check(place, "waits before another phase than its own")
    finished = submit_many(None, "single", [{}])[0]
    # As a restored backup may have it: PostgreSQL would refuse this step.
    place.db.execute("SET session_replication_role = replica")
    place.db.execute("UPDATE pipeline.jobs SET status = 'succeeded', completed_at = now() WHERE id = %s", (finished,))
    place.db.execute("RESET session_replication_role")
    check(place, "intent to send a job that does not wait")
    place.db.execute("UPDATE pipeline.outbox SET sent_at = now() WHERE job_id = %s", (lost,))
    place.db.execute(
        "UPDATE pipeline.jobs SET status = 'running', locked_by = 'me', locked_at = now(), heartbeat_at = now()"
        " WHERE id = %s",
        (lost,),
    )
    check(place, "runs under an unknown worker")
    place.db.execute("UPDATE pipeline.places SET job_id = %s WHERE number = 1", (finished,))
    check(
        place,
        "place of a pool that no job uses is taken",
        place.count("SELECT count(*) FROM pipeline.places WHERE number = 1"),
    )
    assert place.count("SELECT count(*) FROM pipeline.places WHERE job_id IS NOT NULL") == 0
    assert verify(settings.get(), repair=True) == []


@pytest.mark.parametrize("by_hand", ["DELETE FROM pipeline.outbox", "UPDATE pipeline.outbox SET sent_at = NULL"])
def test_a_running_job_that_nobody_would_find_waits_again(place: Place, by_hand: str) -> None:
    """Running jobs are looked for among those whose messages are out."""
    [job] = submit_many(None, "single", [{}])
    with psycopg.connect(place.database_url, autocommit=True) as holder:
        no = holder.execute(
            "INSERT INTO pipeline.workers (id, host, pid, threads, queues) VALUES ('lives', 'h', 1, 1, '{}')"
            " RETURNING no"
        ).fetchone()
        holder.execute("SELECT pg_advisory_lock('pipeline.workers'::regclass::oid::integer, %s)", no)
        place.db.execute("SELECT * FROM pipeline.admit(1, 10)")
        place.db.execute("SELECT * FROM pipeline.claim('lives', %s, '{single.act}', '{1}', '{1}', '{NULL}')", ([job],))
        place.db.execute(by_hand)
        check(place, "runs without being marked as sent")
    assert (place.job(job)["status"], place.job(job)["crashes"]) == ("pending", 0)


def test_a_batch_that_counts_wrong_counts_right_again(place: Place) -> None:
    """Its callback comes when the last child ends, and not one too late."""
    batch = open_batch(None, "plain")
    jobs = submit_many(None, "single", [{}] * 2, batch=batch)
    seal_batch(None, batch)
    place.db.execute("UPDATE pipeline.batches SET remaining = 3, total = 3 WHERE id = %s", (batch,))
    check(place, "batch that counts wrong")
    place.worker()
    place.finished(*jobs)
    place.until(
        lambda: place.count("SELECT count(*) FROM pipeline.batches WHERE completed_at IS NOT NULL"), what="the callback"
    )
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'plain'") == 1


def test_a_key_and_a_tag_of_a_job_that_is_gone_go(place: Place) -> None:
    """Somebody deleted the job by hand; another job gets the key at once all the same."""
    job = submit(None, "single", key="k", tags=["vip"])
    keeps = submit(None, "single", key="l", tags=["vip"])
    place.db.execute("DELETE FROM pipeline.outbox WHERE job_id = %s", (job,))
    place.db.execute("DELETE FROM pipeline.jobs WHERE id = %s", (job,))
    found = [(one.problem, one.detail) for one in verify(settings.get(), repair=False)]
    assert found == [("key of a job that does not have it", "single: k"), ("tag of a job that does not have it", "vip")]
    assert all(one.repaired for one in verify(settings.get(), repair=True))
    assert verify(settings.get(), repair=False) == []
    assert submit(None, "single", key="l") == keeps


@pytest.mark.parametrize(
    "by_hand", ["DELETE FROM pipeline.phases WHERE id = %s", "UPDATE pipeline.phases SET position = 0 WHERE id = %s"]
)
def test_jobs_in_a_phase_that_nobody_declares_are_told_and_left(place: Place, by_hand: str) -> None:
    """Only a person can say whether its code comes back: the command that moves them is named."""
    jobs = submit_many(None, "single", [{}] * 3)
    row = place.row("SELECT id FROM pipeline.phases WHERE queue = 'single.act'")
    assert row is not None
    place.db.execute(by_hand, (row["id"],))
    [finding] = verify(settings.get(), repair=True)
    assert (finding.problem, finding.subject) == ("phase that nobody declares has jobs", "single.act")
    assert not finding.repaired and finding.detail.startswith('3 jobs, of which 0 run: run "pipeline move single.act')
    assert {place.job(job)["status"] for job in jobs} == {"pending"}
