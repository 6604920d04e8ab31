"""What docs/howto/upgrade-without-stopping.md promises: old messages, old rows, and migrations beside busy workers."""

from __future__ import annotations

import gzip
import json
import threading
from uuid import UUID

import psycopg
from pika import BlockingConnection

from pipeline import replay, submit_many
from pipeline.store import database
from pipeline.store.extended import migrate_all
from tests.messages import publish_raw
from tests.place import ROOT, Place

FIRST_GENERATION = ROOT / "tests/db/first_generation.sql.gz"
SENT_AT = "2024-01-01T00:00:00+00:00"
WAITS, SENT, BACKS_OFF, RUNS, FAILED = (UUID(int=0x018CC251F4007000_8000000000000000 + n) for n in range(1, 6))
# As the first generation left them.
OLD_ROWS = """
    INSERT INTO public.workers (id, host, pid, threads, queues) VALUES ('gone-1', 'gone', 1, 8, '{}');
    INSERT INTO public.jobs (id, workflow, trace_id, span_id, body, phase, status, max_attempts, attempts, fence, send, created_at,
                      ready_at, next_retry_at, locked_by, locked_at, heartbeat_at, completed_at, error_message)
    SELECT id, 'triple', repeat('a', 32), repeat('b', 16), '{}', 'first', status, 3, attempts, fence, send, old, old,
           CASE status WHEN 'retryable' THEN old END, CASE status WHEN 'running' THEN 'gone-1' END,
           CASE status WHEN 'running' THEN old END, CASE status WHEN 'running' THEN now() END,
           CASE status WHEN 'failed' THEN old END, CASE status WHEN 'failed' THEN 'it broke' END
    FROM (VALUES (%(waits)s::uuid, 'pending', 0, 0, 1), (%(sent)s, 'pending', 0, 0, 1), (%(backs_off)s, 'retryable', 1, 1, 2),
                 (%(runs)s, 'running', 0, 1, 1), (%(failed)s, 'failed', 3, 3, 3)) AS v(id, status, attempts, fence, send),
         (SELECT %(moment)s::timestamptz AS old) m;
    INSERT INTO public.outbox (job_id, phase_id, priority, due_at, sent_at)
    SELECT j.id, ph.id, 0, j.next_retry_at, CASE WHEN j.id = %(sent)s OR j.status = 'running' THEN j.created_at END
    FROM public.jobs j JOIN public.phases ph USING (workflow, phase) WHERE j.status IN ('pending', 'retryable', 'running');
"""


def old_message(job: UUID, send: int) -> bytes:
    """The first version's bytes, written out: this must not follow the code."""
    header = (
        f'"job_id":"{job}","type":"triple.first","version":"1.0","created_at":"{SENT_AT}","attempt":1,"max_attempts":3'
    )
    tracing = f'"trace_id":"{"a" * 32}","span_id":"{"b" * 16}"'
    envelope = f'{{"header":{{{header},"send":{send}}},"body":{{}},"tracing":{{{tracing}}}}}'
    message = (
        f'{{"queue_name":"triple.first","actor_name":"triple.first","args":[{envelope}],"kwargs":{{}},"options":{{}},'
        f'"message_id":"{job}:{send}","message_timestamp":1704067200000}}'
    )
    assert json.loads(message)
    return message.encode()


def make_old(place: Place, rabbitmq: BlockingConnection) -> None:
    """The database as the first version made it, with a job in every state, and its messages in the broker."""
    place.db.execute("DROP SCHEMA public CASCADE; DROP SCHEMA pipeline CASCADE; CREATE SCHEMA public")
    with psycopg.connect(place.database_url, autocommit=True) as connection:
        connection.execute(gzip.decompress(FIRST_GENERATION.read_bytes()))
        connection.execute(
            "TRUNCATE public.jobs, public.outbox, public.attempts, public.batches, public.workers CASCADE"
        )
        connection.execute(
            "CREATE TABLE public.ledger (job_id uuid NOT NULL, phase text NOT NULL, fence bigint NOT NULL)"
        )
        values = {
            "waits": WAITS,
            "sent": SENT,
            "backs_off": BACKS_OFF,
            "runs": RUNS,
            "failed": FAILED,
            "moment": SENT_AT,
        }
        for statement in OLD_ROWS.split(";\n"):
            if statement.strip():
                connection.execute(statement.encode(), values)
    for job in (SENT, RUNS):
        publish_raw(rabbitmq, "triple.first", old_message(job, 1))


def test_messages_and_rows_of_the_first_version_continue_under_this_one(
    place: Place, rabbitmq: BlockingConnection
) -> None:
    """Waiting, sent, backing off, running under a worker that is gone, failed: each ends, its effects once."""
    make_old(place, rabbitmq)
    assert migrate_all(database.engine())
    place.worker(threads=2)
    assert replay(None, FAILED)
    jobs = (WAITS, SENT, BACKS_OFF, RUNS, FAILED)
    rows = place.finished(*jobs)
    assert [row["status"] for row in rows] == ["succeeded"] * 5, [row["error_message"] for row in rows]
    assert (
        place.count("SELECT count(*) FROM ledger")
        == place.count("SELECT count(DISTINCT (job_id, phase)) FROM ledger")
        == 15
    )
    taken = place.attempts(SENT)[0]
    assert taken["sent_at"].isoformat() == SENT_AT, "the old message itself was the token"
    assert [attempt["outcome"] for attempt in place.attempts(RUNS)][:2] == ["crashed", "succeeded"]


def test_migrations_run_while_workers_run(place: Place) -> None:
    """Every function is replaced again and again under load: nothing fails, is lost or happens twice."""
    place.worker(threads=4)
    jobs = submit_many(None, "triple", [{"n": n} for n in range(200)])
    done = threading.Event()
    rounds: list[bool] = []

    def migrate_again() -> None:
        while not done.is_set():
            place.rows("UPDATE pipeline.installation SET digest = 'of another version' RETURNING 1")
            rounds.append(migrate_all(database.engine()))

    beside = threading.Thread(target=migrate_again)
    beside.start()
    try:
        rows = place.finished(*jobs, timeout=60)
    finally:
        done.set()
        beside.join(60)
    assert len(rounds) > 1 and all(rounds)
    assert {row["status"] for row in rows} == {"succeeded"}
    assert (
        place.count("SELECT count(*) FROM ledger")
        == place.count("SELECT count(DISTINCT (job_id, phase)) FROM ledger")
        == 600
    )
    outcomes = place.rows("SELECT DISTINCT outcome, error FROM pipeline.attempts")
    assert [row["outcome"] for row in outcomes] == ["succeeded"], outcomes
    assert not migrate_all(database.engine()), "a second run changes nothing"
