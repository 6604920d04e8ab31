"""At least one test for each rule of the protocol, on real servers with real workers, named after it."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from pika import BlockingConnection
from sqlalchemy.orm import Session

from pipeline import cancel, open_batch, replay, seal_batch, submit, submit_many
from pipeline.store import database
from tests.forked import supervised
from tests.messages import publish, publish_raw, take
from tests.place import ISOLATED, Place

pytestmark = pytest.mark.usefixtures("with_more")


def envelope(job: UUID, queue: str = "single.act", **header: object) -> dict[str, object]:
    """What the relay would have sent."""
    return {
        "header": {
            "job_id": str(job),
            "type": queue,
            "version": "1.0",
            "created_at": "2026-01-01T00:00:00+00:00",
            "attempt": 1,
            "max_attempts": 3,
            "send": 1,
            **header,
        },
        "body": {},
        "tracing": {"trace_id": "1" * 32, "span_id": "1" * 16},
    }


def test_rule_1_one_token_runs_once_however_often_it_is_sent(place: Place, rabbitmq: BlockingConnection) -> None:
    """The same message 50 times and 20 threads racing for it: one execution, 49 duplicates counted with a reason."""
    place.worker(threads=10, processes=2)
    job = submit(None, "single", {"do": "sleep", "seconds": 1})
    place.running(job)
    publish(rabbitmq, "single.act", envelope(job), times=49)
    [row] = place.finished(job)
    place.until(lambda: place.depth("single.act") == 0, 20, "an empty queue")
    reasons = ("already_running", "finished", "superseded")
    place.until(lambda: sum(place.counter(f"refused.{r}") for r in reasons) == 49, 15, "49 counted duplicates")
    assert (row["status"], row["fence"], len(place.executions())) == ("succeeded", 1, 1)


def test_rule_1_a_message_with_another_send_number_is_never_claimed(place: Place, rabbitmq: BlockingConnection) -> None:
    """Neither an old nor an invented number starts anything."""
    place.worker(threads=2)
    job = submit(None, "single", {}, due=datetime.now(UTC) + timedelta(hours=1))
    publish(rabbitmq, "single.act", envelope(job, send=7))
    place.until(lambda: place.counter("refused.superseded") == 1, 10, "the refusal")
    assert place.executions() == []
    assert place.job(job)["status"] == "pending"


def test_rule_1_a_bare_message_is_adopted_if_its_job_waits_unsent(place: Place, rabbitmq: BlockingConnection) -> None:
    """A plain Dramatiq message with a job id serves as the token; for a job that is queued already it does not."""
    job = submit(None, "single", {})
    channel = rabbitmq.channel()
    from pipeline.broker.topology import declare

    declare(channel, ["single.act"], "classic")
    # The test leads the relay and sends nothing: only an adopted message can start the job.
    with psycopg.connect(place.database_url) as leader:
        leader.execute("LOCK TABLE pipeline.relay_leader IN SHARE UPDATE EXCLUSIVE MODE")
        publish(rabbitmq, "single.act", str(job), times=2)
        place.worker(threads=2)
        [row] = place.finished(job)
    assert row["status"] == "succeeded"
    assert len(place.executions()) == 1
    refused = ("already_running", "running", "finished", "already_queued")
    place.until(lambda: sum(place.counter(f"refused.{r}") for r in refused) == 1, 10, "the second one's refusal")


def test_rule_2_unstarted_messages_are_never_marked_running(place: Place) -> None:
    """One busy thread: exactly one job runs, the rest wait as pending."""
    place.worker(threads=1)
    jobs = submit_many(None, "single", [{"do": "sleep", "seconds": 1.5} for _ in range(4)])
    place.running(jobs[0])
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'running'") == 1
    for other in jobs:
        cancel(None, other)


def test_rule_3_a_deploy_costs_no_budget(place: Place) -> None:
    """SIGTERM to the whole group, as service managers do: the job is released, counted nowhere, and continues elsewhere."""
    worker = place.worker(threads=1, PIPELINE_SHUTDOWN_GRACE_SECONDS="0.2")
    job = submit(None, "single", {"do": "sleep", "seconds": 60})
    place.running(job)
    os.killpg(worker.pid, signal.SIGTERM)
    worker.wait(20)
    assert place.job(job)["status"] == "pending"
    place.worker(threads=1)
    [row] = place.finished(job)
    assert (row["status"], row["attempts"], row["crashes"]) == ("succeeded", 0, 0)
    assert [a["outcome"] for a in place.attempts(job)] == ["released", "succeeded"]


def test_rule_4_a_phase_that_kills_its_process_is_a_poison_pill_after_three_crashes(place: Place) -> None:
    """The last two in a child of its own, the signal recorded; neighbours spend at most one crash; its message is a dead letter."""
    supervisor = supervised(place, 1, threads=3, grace=5)
    supervisor.start()
    try:
        place.until(place.pids, 20, "the worker")
        beside = submit_many(None, "single", [{"do": "sleep", "seconds": 3} for _ in range(2)])
        place.until(
            lambda: place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'running'") == 2,
            20,
            "the neighbours",
        )
        bad = submit(None, "single", {"do": "kill"})
        after = submit_many(None, "single", [{"do": "ledger"} for _ in range(3)])
        [row] = place.finished(bad, timeout=60)
        assert (row["status"], row["crashes"], row["attempts"]) == ("failed", 3, 0)
        assert "SIGKILL" in row["error_message"]
        pids = [pid for job, _, _, pid in place.executions() if job == str(bad)]
        workers = {r["pid"] for r in place.rows("SELECT pid FROM pipeline.workers")}
        assert [pid in workers for pid in pids] == [True, False, False]
        for job in place.finished(*beside, *after, timeout=60):
            assert job["status"] == "succeeded" and job["crashes"] <= 1 and job["attempts"] == 0
        place.until(lambda: place.depth("single.act.XQ") == 1, 20, "the dead letter")
    finally:
        supervisor.stop()


@pytest.mark.parametrize(
    ("workflow", "do", "cause"),
    [("caged", "segfault", "SIGSEGV"), ("caged", "hog", "memory limit"), ("hasty", "sleep", "time limit")],
)
def test_rule_4_an_isolated_phase_dies_alone_with_its_cause_recorded(
    place: Place, workflow: str, do: str, cause: str
) -> None:
    """A crash, a memory hog and an endless loop take down only their own child process."""
    place.worker(threads=2, PIPELINE_WORKFLOWS=ISOLATED)
    place.db.execute("UPDATE pipeline.phases SET max_crashes = 1 WHERE workflow = 'caged'")
    [pid] = place.pids()
    job = submit(None, workflow, {"do": do, "seconds": 60})
    [row] = place.finished(job, timeout=40)
    assert row["status"] == "failed" and cause in row["error_message"]
    assert place.pids() == [pid]


def test_rule_4_an_isolated_phase_keeps_every_guarantee(place: Place) -> None:
    """Results, writes, errors and waits come through the child as they would without one."""
    place.worker(threads=3, PIPELINE_WORKFLOWS=ISOLATED)
    good, flaky, waits, hopeless = submit_many(
        None, "caged", [{"do": "ledger"}, {"do": "flaky"}, {"do": "wait", "times": 1}, {"do": "permanent"}]
    )
    rows = place.finished(good, flaky, waits, hopeless, timeout=60)
    assert [row["status"] for row in rows] == ["succeeded", "succeeded", "succeeded", "failed"]
    assert [row["attempts"] for row in rows] == [0, 1, 0, 1]
    assert place.count("SELECT count(*) FROM ledger") == 3
    assert rows[0]["result"] == {"act": {"fence": 1}}


def test_rule_5_a_full_pool_waits_in_postgresql(place: Place) -> None:
    """Three processors: never a fourth job at once, over all processes; the others wait at the gate, not in threads."""
    place.worker(threads=4, processes=2)
    jobs = submit_many(None, "pooled", [{"seconds": 0.3} for _ in range(12)])
    most = 0
    while place.count("SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL"):
        busy = place.count("SELECT count(*) FROM pipeline.processors WHERE phase = 'narrow' AND state = 'busy'")
        most = max(most, busy)
        assert busy <= 3
    assert most == 3
    assert {row["status"] for row in place.finished(*jobs)} == {"succeeded"}
    assert place.counter("refused.pool_full") == 0


def test_rule_5_a_full_queue_waits_in_postgresql_and_a_shut_gate_is_reported(place: Place) -> None:
    """Five messages in the broker at most; the rest wait as rows and follow as there is room."""
    from tests.more_workflows import small_queue

    place.worker(threads=1, queues=("plain.alpha",))
    jobs = submit_many(None, "small", [{} for _ in range(12)])
    place.until(lambda: place.depth("small.queue") == 5, 10, "a full queue")
    assert place.count("SELECT count(*) FROM pipeline.outbox WHERE sent_at IS NULL") == 7
    assert small_queue.send(jobs[-1]).reason == "queue_full"
    place.worker(threads=2)
    assert {row["status"] for row in place.finished(*jobs)} == {"succeeded"}


def test_rule_5_throttled_jobs_wait_in_order_for_their_time(place: Place) -> None:
    """Two every half second: six jobs take at least a second."""
    place.worker(threads=4)
    jobs = submit_many(None, "paced", [{} for _ in range(6)])
    place.finished(*jobs)
    sent = [row["sent_at"].timestamp() for row in place.rows("SELECT sent_at FROM pipeline.attempts ORDER BY sent_at")]
    assert [round(2 * (moment - sent[0])) / 2 for moment in sent] == [0, 0, 0.5, 0.5, 1, 1]


def test_rule_6_a_retry_waits_in_postgresql_and_exhaustion_is_a_dead_letter(
    place: Place, rabbitmq: BlockingConnection
) -> None:
    """Three executions, then failed; the message goes through the dead-letter exchange."""
    place.worker(threads=2)
    job = submit(None, "single", {"do": "fail"})
    [row] = place.finished(job)
    assert (row["status"], row["attempts"]) == ("failed", 3)
    assert "the outside world is away" in row["error_message"]
    assert [a["outcome"] for a in place.attempts(job)] == ["retried", "retried", "exhausted"]
    [letter] = place.until(lambda: take(rabbitmq, "single.act.XQ"), 10, "the dead letter")
    assert letter["headers"]["x-death"][0]["reason"] == "rejected"
    assert json.loads(letter["body"])["args"][0]["header"]["job_id"] == str(job)


def test_rule_7_a_message_is_acknowledged_only_after_its_transition(place: Place) -> None:
    """While PostgreSQL holds the transition back, the message stays unacknowledged."""
    place.worker(threads=1)
    job = submit(None, "single", {"do": "sleep", "seconds": 0.5})
    place.running(job)
    with psycopg.connect(place.database_url) as blocker:
        blocker.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (job,))
        place.until(lambda: "settled later" in place.logs(), 20, "the completion to find the row locked")
        assert place.depth("single.act") == 1
    place.finished(job)
    place.until(lambda: place.depth("single.act") == 0, 10, "the acknowledgement")


def test_rule_8_a_job_commits_with_the_callers_rows_or_not_at_all(place: Place) -> None:
    """submit inside the caller's transaction; a rollback leaves nothing."""
    with Session(database.engine()) as session:
        kept = submit(session, "single", {"do": "nothing"})
        session.commit()
    with Session(database.engine()) as session:
        submit(session, "single", {"do": "nothing"})
        session.rollback()
    assert [row["id"] for row in place.rows("SELECT id FROM pipeline.jobs")] == [kept]
    place.db.execute("SELECT pipeline.submit('single', '{\"do\": \"nothing\"}')")
    place.worker(threads=1)
    jobs = [row["id"] for row in place.rows("SELECT id FROM pipeline.jobs")]
    assert len(jobs) == 2 and {row["status"] for row in place.finished(*jobs)} == {"succeeded"}


def test_rule_8_two_relays_do_no_harm(place: Place, rabbitmq: BlockingConnection) -> None:
    """Both admit at once; every job is sent once."""
    place.worker(threads=2, queues=("plain.alpha",))
    jobs = submit_many(None, "triple", [{} for _ in range(200)])
    with psycopg.connect(place.database_url, autocommit=True) as second:
        taken = [row[0] for row in second.execute("SELECT job_id FROM pipeline.admit(NULL, 50)").fetchall()]
    place.until(lambda: place.depth("triple.first") == 200 - len(taken), 15, "the leader's share")
    sent = {json.loads(m["body"])["args"][0]["header"]["job_id"] for m in take(rabbitmq, "triple.first")}
    assert len(sent) == 200 - len(taken)
    assert sent.isdisjoint(str(job) for job in taken)
    assert sent | {str(job) for job in taken} == {str(job) for job in jobs}


@pytest.mark.parametrize("do", ["bad_write", "deadlock"])
def test_rule_9_a_write_that_fails_fails_alone(place: Place, do: str) -> None:
    """A constraint or a deadlock in one phase's write leaves jobs that were committed beside it alone."""
    place.worker(threads=6)
    bodies = [{"do": do, "rows": [1, 2]}, {"do": do, "rows": [2, 1]}] + [{"do": "nothing"} for _ in range(20)]
    jobs = submit_many(None, "single", bodies)
    rows = place.finished(*jobs)
    assert {row["status"] for row in rows[2:]} == {"succeeded"}
    assert sum(row["attempts"] for row in rows[2:]) == 0
    if do == "bad_write":
        assert {row["status"] for row in rows[:2]} == {"failed"} and "NotNullViolation" in rows[0]["error_message"]
    else:
        assert {row["status"] for row in rows[:2]} == {"succeeded"}
        assert place.count("SELECT sum(n) FROM rows_to_lock") == 4
        # The write is repeated, and not the phase: the deadlock is nothing that the job did wrong.
        assert [(row["attempts"], row["fence"]) for row in rows[:2]] == [(0, 1)] * 2


def test_rule_10_the_sweeper_sends_again_what_the_broker_lost(place: Place, rabbitmq: BlockingConnection) -> None:
    """A purged queue is noticed by comparing counts; the new send number voids anything that turns up after all."""
    place.worker(threads=1, queues=("plain.alpha",))
    jobs = submit_many(None, "single", [{"do": "nothing"} for _ in range(10)])
    place.until(lambda: place.depth("single.act") == 10, 10, "the queue to fill")
    rabbitmq.channel().queue_purge("single.act")
    place.worker(threads=2)
    assert {row["status"] for row in place.finished(*jobs, timeout=40)} == {"succeeded"}
    assert place.counter("resent") >= 10 or place.until(lambda: place.counter("resent") >= 10, 5, "the count")


def test_rule_11_the_last_final_child_sends_the_callback_once(place: Place) -> None:
    """Failed and cancelled children count too; a replay never fires it again."""
    place.worker(threads=3)
    with database.engine().begin() as connection:
        batch = open_batch(connection, then="plain", body={"of": "the batch"})
        jobs = submit_many(
            connection, "single", [{"do": "nothing"}, {"do": "permanent"}, {"do": "wait", "seconds": 600}], batch=batch
        )
        seal_batch(connection, batch)
    place.finished(*jobs[:2])
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'plain'") == 0
    place.until(lambda: place.job(jobs[2])["wait_reason"] == "rate_limit", 10, "the child to be snoozed")
    cancel(None, jobs[2])
    # Where somebody else counts just then, the end waits for nobody, and is counted a moment later.
    callbacks = "SELECT * FROM pipeline.jobs WHERE workflow = 'plain'"
    place.until(lambda: place.rows(callbacks), 10, "the callback")
    [callback] = place.rows(callbacks)
    assert callback["body"]["batch"] == {"id": str(batch), "total": 3, "failed": 2}
    replay(None, jobs[1])
    place.finished(jobs[1], callback["id"])
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'plain'") == 1


def test_rule_12_permanent_errors_are_not_retried_and_leave_no_dead_letter(place: Place) -> None:
    """Failed at once, acknowledged."""
    place.worker(threads=1)
    job = submit(None, "single", {"do": "permanent"})
    [row] = place.finished(job)
    assert (row["status"], len(place.executions())) == ("failed", 1)
    place.until(lambda: place.depth("single.act") == 0, 10, "the acknowledgement")
    assert place.depth("single.act.XQ") == 0


@pytest.mark.parametrize(
    "broken",
    [
        {"header": {}},
        "not a uuid",
        17,
        None,
        {"version": "9.9"},
        {"job_id": "no"},
        {"send": "1"},
        {"type": "plain.alpha"},
    ],
)
def test_rule_12_an_invalid_envelope_rejects_the_message_and_never_the_job(
    place: Place, rabbitmq: BlockingConnection, broken: object
) -> None:
    """The message goes to the dead letters; the job it names continues undisturbed."""
    place.worker(threads=1)
    job = submit(None, "single", {"do": "sleep", "seconds": 0.5})
    place.running(job)
    bad = envelope(job, **broken) if isinstance(broken, dict) and "header" not in broken else broken
    publish(rabbitmq, "single.act", bad)
    place.until(lambda: place.depth("single.act.XQ") == 1, 10, "the dead letter")
    assert [row["status"] for row in place.finished(job)] == ["succeeded"]


def test_rule_12_bytes_that_are_no_message_go_to_the_dead_letters(place: Place, rabbitmq: BlockingConnection) -> None:
    """Garbage, a message for an unknown actor, and one for an unknown job do not disturb the worker."""
    place.worker(threads=1)
    publish_raw(rabbitmq, "single.act", b"\xff\xfe not json")
    publish_raw(rabbitmq, "single.act", b"x" * 300_000)
    publish(rabbitmq, "single.act", envelope(uuid4()))
    place.until(lambda: place.depth("single.act.XQ") == 2, 10, "two dead letters")
    place.until(lambda: place.counter("refused.unknown_job") == 1, 10, "the unknown job to be counted")
    job = submit(None, "single", {"do": "nothing"})
    assert [row["status"] for row in place.finished(job)] == ["succeeded"]


def test_rule_13_a_dead_letter_moved_back_revives_its_job(place: Place, rabbitmq: BlockingConnection) -> None:
    """As the management UI's "Move messages" does: same body, x-death kept. The job gets fresh budgets."""
    place.worker(threads=1)
    job = submit(None, "single", {"do": "flaky", "until": 5})
    place.finished(job)
    [letter] = place.until(lambda: take(rabbitmq, "single.act.XQ"), 10, "the dead letter")
    publish_raw(rabbitmq, "single.act", letter["body"], headers=letter["headers"])
    place.until(lambda: place.counter("revived") == 1, 15, "the revival")
    place.finished(job)
    assert [a["outcome"] for a in place.attempts(job)][:3] == ["retried", "retried", "exhausted"]
    assert len(place.attempts(job)) > 3
    publish_raw(rabbitmq, "single.act", letter["body"], headers=letter["headers"])
    place.until(lambda: place.counter("refused.superseded") == 1, 15, "the old dead letter to be void")


def test_rule_14_every_start_has_its_own_identity_and_temp_folders_go_away(place: Place) -> None:
    """Same WORKER_ID, different workers; a killed worker's folders are removed by another."""
    temp = place.folder / "temp"
    place.worker(threads=1, WORKER_ID="ocr-1")
    place.worker(threads=1, WORKER_ID="ocr-1")
    ids = [row["id"] for row in place.rows("SELECT id FROM pipeline.workers")]
    assert len(set(ids)) == 2 and all(i.startswith("ocr-1-") for i in ids)
    job = submit(None, "single", {"do": "temp", "seconds": 60})
    place.until(lambda: list(temp.glob("*/*/*/page.png")), 20, "the folder")
    os.kill(place.holder(job), signal.SIGKILL)
    place.finished(job)
    place.until(lambda: len(list(temp.glob("*/*"))) == 1, 20, "the dead worker's folder to go")
    done = submit(None, "single", {"do": "temp", "seconds": 0})
    place.finished(done)
    assert not list(Path(temp).glob("*/*/*"))


def test_g5_a_cancelled_job_leaves_no_effect_and_its_attempt_is_told(place: Place) -> None:
    """Within one heartbeat; the message is acknowledged, not retried."""
    place.worker(threads=1)
    job = submit(None, "single", {"do": "sleep", "seconds": 60})
    place.running(job)
    assert cancel(None, job) is True
    started = time.monotonic()
    place.until(lambda: place.depth("single.act") == 0, 20, "the attempt to stop")
    assert time.monotonic() - started < 5
    assert place.job(job)["status"] == "cancelled"
    assert place.count("SELECT count(*) FROM ledger") == 0
    assert cancel(None, job) is False


def test_g9_higher_priorities_go_first_then_older_jobs(place: Place) -> None:
    """Within a phase the higher priority first, then the older one."""
    jobs = [submit(None, "single", {"do": "nothing", "n": n}, priority=p) for n, p in enumerate([0, 0, 5, 9])]
    place.worker(threads=1)
    place.finished(*jobs)
    order = [job for job, *_ in place.executions()]
    assert order == [str(jobs[3]), str(jobs[2]), str(jobs[0]), str(jobs[1])]


@pytest.mark.new_vhost
def test_rule_10_what_rabbitmq_gave_up_by_itself_fails_its_job(place: Place, rabbitmq: BlockingConnection) -> None:
    """Quorum queues: a message that is delivered too often without a claim is read back from the dead letters."""
    from pipeline.broker.topology import DELIVERY_LIMIT, declare

    place.worker(threads=1, queues=("plain.alpha",), PIPELINE_QUEUE_TYPE="quorum")
    job = submit(None, "single", {"do": "nothing"})
    # A quorum queue that is just being declared has no process to answer yet.
    place.until(lambda: place.depth("single.act") == 1, 15, "the message")
    channel = rabbitmq.channel()
    declare(channel, ["single.act"], "quorum")
    deliveries = 0
    while deliveries <= DELIVERY_LIMIT:
        method, _, _ = channel.basic_get("single.act")
        if method is not None and method.delivery_tag is not None:
            deliveries += 1
            channel.basic_reject(method.delivery_tag, requeue=True)  # a nack is no delivery since RabbitMQ 4.3
        elif place.depth("single.act.XQ"):
            break
    [row] = place.finished(job, timeout=40)
    assert row["status"] == "failed" and "delivery_limit" in row["error_message"]
    assert place.attempts(job)[-1]["outcome"] == "undeliverable"


@pytest.mark.new_vhost
def test_the_engine_runs_on_quorum_queues_too(place: Place) -> None:
    """Three phases, retries and a dead letter, with PIPELINE_QUEUE_TYPE=quorum."""
    place.worker(threads=4, PIPELINE_QUEUE_TYPE="quorum")
    jobs = submit_many(None, "triple", [{} for _ in range(20)])
    bad = submit(None, "single", {"do": "fail"})
    assert {row["status"] for row in place.finished(*jobs)} == {"succeeded"}
    assert place.finished(bad)[0]["status"] == "failed"
    place.until(lambda: place.depth("single.act.XQ") == 1, 15, "the dead letter")
