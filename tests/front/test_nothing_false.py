"""What commands say is so: doctor looks at the workers, JSON is JSON, and a killed worker did not stop."""

from __future__ import annotations

import json
import os
import signal

import psycopg
import pytest

from pipeline.dev import doctor as doctor_of
from pipeline.journey.submit import submit
from tests.commands import pipeline
from tests.db import steps
from tests.place import Place


def doctor(place: Place) -> tuple[int, str]:
    """Its exit code, and what it says as one line."""
    answer = pipeline(place, "doctor")
    return answer.returncode, " ".join((answer.stdout + answer.stderr).split())


def test_doctor_says_that_nobody_works(place: Place) -> None:
    """And is satisfied as soon as somebody does."""
    code, told = doctor(place)
    assert code == 1
    for said in ("wrong 0 workers are alive", "wrong nobody leads the relay", "wrong nobody leads maintenance"):
        assert said in told
    place.worker()
    code, told = doctor(place)
    assert code == 0, told
    for said in ("ok 1 workers are alive", "ok the relay has a leader", "ok maintenance has a leader"):
        assert said in told


def test_doctor_names_jobs_whose_queue_no_worker_serves(place: Place) -> None:
    """Its module was forgotten, or its queue."""
    place.worker(queues=("triple.first",))
    submit(None, "single")
    code, told = doctor(place)
    assert code == 1
    assert "wrong 1 jobs wait for single.act, which no worker that is alive serves" in told


def test_verify_prints_json_also_when_it_finds_something(place: Place) -> None:
    """What it logs goes to standard error."""
    job = steps.submit(place.db)
    place.db.execute("DELETE FROM pipeline.outbox WHERE job_id = %s", (job,))
    answer = pipeline(place, "verify", "--json")
    [found] = json.loads(answer.stdout)
    assert (found["problem"], found["subject"]) == ("waits without an intent to send", str(job))


def test_a_worker_that_was_killed_is_not_called_stopped(place: Place) -> None:
    """One that was told to stop is."""
    first = place.worker()
    [killed] = place.pids()
    place.worker()
    os.kill(killed, signal.SIGKILL)
    state = "SELECT pipeline.worker_state(w) AS state FROM pipeline.workers w WHERE pid = %s"
    place.until(lambda: place.row(state, killed) == {"state": "died"}, 20, "it to be called dead")
    [other] = place.pids()
    first.wait(20)
    os.kill(other, signal.SIGTERM)
    place.until(lambda: place.row(state, other) == {"state": "stopped"}, 20, "it to sign off")


def test_doctor_looks_at_versions_of_the_code_at_workflows_and_at_long_transactions(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with what to do."""
    place.worker(threads=1)
    place.worker(threads=1, PIPELINE_CODE_VERSION="2026.11", wait=False)
    place.until(lambda: place.count("SELECT count(*) FROM pipeline.workers WHERE version = '2026.11'"), 20, "the other")
    monkeypatch.setattr(doctor_of, "LONG_SNAPSHOT", 0.1)
    with psycopg.connect(place.database_url) as held:
        held.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        held.execute("SELECT 1 FROM pipeline.jobs")
        place.until(lambda: any("SELECT pg_terminate_backend" in one.cure for one in doctor_of.examine()), 10, "a look")
    found = {one.what: one for one in doctor_of.examine()}
    [versions] = [one for what, one in found.items() if "versions of the code" in what]
    assert not versions.well and "2026.11 (1)" in versions.what and "restart the workers" in versions.cure
    [unserved] = [one for what, one in found.items() if "serves" in what and "no job waits there" in what]
    assert unserved.well and "caged" in unserved.what
