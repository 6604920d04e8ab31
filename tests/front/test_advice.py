"""What status says of a job that waits for somebody: no worker, no worker with its module, an alarm of RabbitMQ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx

from pipeline import submit
from tests.apis import running_api
from tests.commands import pipeline, pipeline_here
from tests.place import Place


def said(place: Place, job: object) -> str:
    """By status, as one line."""
    return " ".join(pipeline_here(place, "status", str(job), COLUMNS="200").stdout.split())


def test_status_says_that_no_worker_is_alive(place: Place) -> None:
    job = submit(None, "single")
    assert "no worker is alive: start some with dramatiq pipeline.actors" in said(place, job)


def test_status_says_that_no_worker_has_the_workflows_module(place: Place) -> None:
    """On the command line, in JSON, and over HTTP."""
    place.worker(queues=("triple.first",))
    job = submit(None, "single")
    sentence = "no worker consumes single.act: is PIPELINE_WORKFLOWS set for them, with its module?"
    place.until(lambda: sentence in said(place, job), 10, "the sentence")
    assert f'"advice": "{sentence}"' in pipeline_here(place, "status", str(job), "--json").stdout
    with running_api(place) as api:
        answer: httpx.Response = api.get(f"/v1/jobs/{job}")
        assert answer.json()["advice"] == sentence


def test_status_and_doctor_say_that_rabbitmq_takes_nothing(place: Place) -> None:
    """A message that its sender has not had confirmed for long. What the worker reports is put into its row here."""
    place.worker(queues=("triple.first",))
    job = submit(None, "single")
    place.until(lambda: "waits for: queued" in said(place, job), 10, "its message")

    def reports(command: Callable[[], str], sentence: str) -> bool:
        place.db.execute("UPDATE pipeline.outbox SET sent_at = now() - interval '1 minute' WHERE job_id = %s", (job,))
        place.db.execute("UPDATE pipeline.workers SET confirmed_at = now() - interval '1 hour'")
        return sentence in " ".join(command().split())

    sentence = "RabbitMQ has not confirmed its message: has it an alarm, of memory or disk?"
    place.until(lambda: reports(lambda: said(place, job), sentence), 20, "status")
    sentence = "wrong RabbitMQ has confirmed all but the last 36"
    place.until(lambda: reports(lambda: pipeline_here(place, "doctor").stderr, sentence), 20, "doctor")


def test_commands_say_where_postgresql_was_looked_for(place: Place) -> None:
    """Not the question that libpq adds."""
    answer = pipeline(place, "jobs", DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing")
    assert answer.returncode == 3
    assert "127.0.0.1" in answer.stderr and "refused" in answer.stderr and "?" not in answer.stderr, answer.stderr


def test_without_workflows_migrate_and_a_worker_say_so(place: Place, tmp_path: Path) -> None:
    answer = pipeline(place, "migrate", PIPELINE_WORKFLOWS="")
    assert answer.returncode == 0 and "set PIPELINE_WORKFLOWS" in answer.stderr
    place.worker(PIPELINE_WORKFLOWS="")
    assert "no workflow is loaded, so this worker takes no job" in place.logs()
