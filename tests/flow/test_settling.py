"""Settlements that meet what nobody expects: a lost answer, an error of PostgreSQL's own, a row in other hands."""

from __future__ import annotations

import os
import signal
import socket
import threading
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from uuid import UUID

import psycopg
from psycopg.rows import dict_row
from sqlalchemy import Connection, text

from pipeline import submit
from pipeline.declare.phase import PhaseSpec
from pipeline.journey.attempt import Attempt
from pipeline.journey.checkpoint import Interrupted
from pipeline.journey.settle import settle_error
from pipeline.journey.write import complete_with_write
from pipeline.store import database
from pipeline.store.group_commit import Completion, Repeated
from tests.attempts import attempt
from tests.db import steps
from tests.place import ISOLATED, Place

if TYPE_CHECKING:
    from pipeline.worker.process import WorkerProcess

SLOW_COMMIT = """
    CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON ledger DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION slowly()"""
FAILS_ONCE = """
    CREATE SEQUENCE once;
    ALTER FUNCTION pipeline.fail(uuid, bigint, text) RENAME TO really_fail;
    CREATE FUNCTION pipeline.fail(p_id uuid, p_fence bigint, p_error text) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('once') = 1 THEN RAISE EXCEPTION 'nobody thought of this'; END IF;
        RETURN pipeline.really_fail(p_id, p_fence, p_error);
    END $$"""


def claim_of(job: UUID, fence: int) -> Attempt:
    return attempt(PhaseSpec("single", "act"), job, fence)


def test_a_write_whose_answer_was_lost_while_it_committed_is_kept_once(place: Place) -> None:
    """The server was still committing when it was asked whether it had: the write runs again, and is rolled back."""
    with psycopg.connect(place.database_url, autocommit=True, row_factory=dict_row) as db:
        hold = steps.held(db, "single")
    place.db.execute(SLOW_COMMIT)
    calls = []

    def write(connection: Connection) -> None:
        values = {"job": hold.job}
        connection.execute(text("INSERT INTO ledger (job_id, phase, fence) VALUES (:job, 'act', 1)"), values)
        calls.append(1)
        if len(calls) == 1:
            wire = socket.socket(fileno=os.dup(database.raw(connection).fileno()))
            threading.Timer(0.3, lambda: wire.shutdown(socket.SHUT_RDWR)).start()

    completed = complete_with_write(1, Completion(claim_of(hold.job, hold.fence), None), write)
    assert completed == Repeated()
    assert len(calls) > 1
    assert place.count("SELECT count(*) FROM ledger") == 1
    assert place.job(hold.job)["status"] == "succeeded"


def test_an_error_that_nobody_thought_of_leaves_no_job_without_an_end(place: Place) -> None:
    """Its heartbeat would never stop, and its message would never be acknowledged."""
    place.db.execute(FAILS_ONCE)
    place.worker(threads=1)
    job = submit(None, "single", {"do": "permanent"})
    [row] = place.finished(job)
    assert (row["status"], row["fence"]) == ("failed", 1)
    place.until(lambda: place.depth("single.act") == 0, 10, "the acknowledgement")


def test_an_isolated_phase_whose_job_is_held_is_not_killed_for_it(place: Place) -> None:
    """Its limit is three seconds and its first crash is its last; the work was done when the application came."""
    place.worker(threads=1, PIPELINE_WORKFLOWS=ISOLATED)
    job = submit(None, "hasty", {"do": "ledger"})
    place.running(job)
    with psycopg.connect(place.database_url) as app:
        app.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (job,))
        began = monotonic()
        place.until(lambda: monotonic() - began > 6 or place.job(job)["completed_at"], 10, "its limit to be over")
        assert place.job(job)["status"] == "running"
    [row] = place.finished(job)
    assert (row["status"], row["crashes"]) == ("succeeded", 0)


def test_a_stop_with_a_settlement_that_waits_costs_no_crash(place: Place) -> None:
    """The worker does not stay for it, and nobody is charged."""
    worker = place.worker(threads=2, PIPELINE_SHUTDOWN_GRACE_SECONDS="0.2")
    job = submit(None, "single", {"do": "sleep", "seconds": 1})
    place.running(job)
    with psycopg.connect(place.database_url) as app:
        app.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (job,))
        place.until(lambda: "settled later" in place.logs(), 20, "the settlement to find the row locked")
        worker.send_signal(signal.SIGTERM)
        worker.wait(30)
    place.worker(threads=2)
    [row] = place.finished(job)
    assert (row["status"], row["crashes"]) == ("succeeded", 0)
    assert [one["outcome"] for one in place.attempts(job)] == ["released", "succeeded"]


def test_an_attempt_that_a_heartbeat_called_lost_after_its_commit_leaves_no_job_behind(place: Place) -> None:
    """Its commit had moved the job on, and its answer was lost: the job ran for nobody until its lease was stale."""
    with psycopg.connect(place.database_url, autocommit=True, row_factory=dict_row) as db:
        number = steps.sign_on(db, "w1")
        held = steps.held(db, "triple")
        steps.complete(db, held, continuing="triple.second")
        mine = attempt(PhaseSpec("triple", "first"), held.job, held.fence)
        mine.interrupt("lost")
        quiet = SimpleNamespace(warning=lambda *_, **__: None)
        worker = SimpleNamespace(no=number, log=quiet, liveness=SimpleNamespace(lost=lambda _: None))
        assert settle_error(cast("WorkerProcess", worker), mine, Interrupted()) == "lost"
    row = place.job(held.job)
    assert (row["status"], row["phase"], row["attempts"], row["crashes"]) == ("pending", "second", 0, 0)
