"""Wrong input gives one clear message that says what to do, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from pipeline import submit, submit_many
from pipeline.declare.errors import BadInput
from tests.commands import pipeline, pipeline_here
from tests.place import ISOLATED, ROOT, Place


@pytest.mark.parametrize(
    ("workflow", "body", "says"),
    [
        ("nonsense", {}, "unknown workflow 'nonsense': known workflows:"),
        ("single", {"text": "x" * 70_000}, "the limit is 65536: store the data elsewhere and send a reference"),
        ("single", {"when": object()}, "the body cannot be stored as JSON: Type is not JSON serializable: object"),
        ("single", {"text": "a\0b"}, "the body cannot be stored as JSON: PostgreSQL has no NUL character"),
    ],
)
def test_a_wrong_job_is_refused_with_a_reason(place: Place, workflow: str, body: dict[str, object], says: str) -> None:
    """Nothing is written."""
    with pytest.raises(BadInput) as refused:
        submit(None, workflow, body)
    assert says in str(refused.value)
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 0


def test_sql_refuses_what_python_refuses(place: Place) -> None:
    """pipeline.submit from any language: the same limits, with a hint."""
    with pytest.raises(psycopg.Error) as refused:
        place.db.execute("SELECT pipeline.submit('single', to_jsonb(repeat('x', 10)))")
    assert refused.value.sqlstate == "PL004" and "send an object" in (refused.value.diag.message_hint or "")
    with pytest.raises(psycopg.Error) as refused:
        place.db.execute("SELECT pipeline.submit('single', jsonb_build_object('t', repeat('x', 70000)))")
    assert refused.value.sqlstate == "PL005" and "reference" in (refused.value.diag.message_hint or "")


def nested(levels: int) -> dict[str, Any]:
    return {"a": nested(levels - 1)} if levels else {}


def test_a_body_is_nested_less_than_a_hundred_levels_deep(place: Place) -> None:
    """What is deeper could be neither read nor sent: one such job would hold up all others."""
    place.worker()
    deep = submit(None, "triple", nested(98))
    with pytest.raises(BadInput, match="body 1 is nested 100 levels deep"):
        submit(None, "triple", nested(101))
    for body in (json.dumps(nested(300)), '{"a":' + "[" * 3000 + "]" * 3000 + "}"):
        with pytest.raises(psycopg.Error) as refused:
            place.db.execute("SELECT pipeline.submit('triple', %s::jsonb)", (body,))
        assert refused.value.sqlstate == "PL006" and "reference" in (refused.value.diag.message_hint or "")
        with pytest.raises(psycopg.Error) as refused:
            place.db.execute("SELECT pipeline.open_batch('triple', %s::jsonb)", (body,))
        assert refused.value.sqlstate == "PL006"
    [row] = place.finished(deep)
    assert row["status"] == "succeeded"


NUMBERS = ["1e20", "1.989e30", "-1e300", "123456789012345678901234567890", "1e400", "-1e5000", "18446744073709551616"]


@pytest.mark.parametrize("workflow", ["triple", "caged"])
def test_a_number_of_any_size_goes_its_way_and_holds_nobody_up(place: Place, workflow: str) -> None:
    """JSON knows no limit and PostgreSQL keeps all digits; what a worker cannot count with must not stop the relay."""
    worker = place.worker(PIPELINE_WORKFLOWS=ISOLATED)
    statement = "SELECT pipeline.submit(%s, %s::jsonb) AS id"
    jobs = [place.rows(statement, workflow, f'{{"n": {number}}}')[0]["id"] for number in NUMBERS]
    jobs += [submit(None, workflow, {"n": 1e20}), submit(None, workflow, {"n": 7})]
    succeeded = "SELECT count(*) FROM pipeline.jobs WHERE status = 'succeeded'"
    place.until(lambda: place.count(succeeded) == len(jobs), 60, "all to succeed")
    assert place.count("SELECT count(*) FROM pipeline.attempts WHERE outcome <> 'succeeded'") == 0
    assert worker.poll() is None


def test_one_bad_body_refuses_the_whole_call(place: Place) -> None:
    """submit_many is all or nothing."""
    with pytest.raises(BadInput, match="body 2"):
        submit_many(None, "single", [{}, {"t": "x" * 70_000}, {}])
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 0


def test_send_says_why_not(place: Place) -> None:
    """Already queued, other phase, final, unknown: the reason comes back."""
    job = submit(None, "triple", {})
    from tests.workflows import first, second, third

    assert bool(first.send(job)) is True
    assert first.send(job).reason == "already_queued"
    assert second.send(job).reason == "other_phase"
    assert first.send(uuid4()).reason == "unknown_job"
    assert first.send("not an id").reason == "unknown_job"
    place.worker(threads=1)
    place.finished(job)
    assert third.send(job).reason == "final"
    assert "use replay" in str(third.send(job))


def test_wrong_settings_are_all_named_at_once(place: Place, tmp_path: Path) -> None:
    """And never with the secret they hold."""
    answer = pipeline(
        place,
        "migrate",
        DATABASE_URL="mysql://root:secret@x/y",
        PIPELINE_HEARTBEAT_SECONDS="-3",
        PIPELINE_QUEUE_TYPE="huge",
    )
    assert answer.returncode == 1
    for name in ("DATABASE_URL", "PIPELINE_HEARTBEAT_SECONDS", "PIPELINE_QUEUE_TYPE"):
        assert name in answer.stderr
    assert "secret" not in answer.stderr and "Traceback" not in answer.stderr


def test_no_server_is_one_clear_message(place: Place) -> None:
    """The command says where it looked and what to do; the worker says the same and exits."""
    nowhere = "postgresql://nobody:secret@127.0.0.1:9/none"
    answer = pipeline(place, "submit", "single", "{}", DATABASE_URL=nowhere)
    assert answer.returncode == 3
    assert "PostgreSQL does not answer" in answer.stderr and "pipeline services start" in answer.stderr
    assert "secret" not in answer.stderr and "Traceback" not in answer.stderr


def test_no_settings_at_all_points_to_the_private_servers(tmp_path: Path) -> None:
    """The first thing a newcomer meets."""
    clean = {
        k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "RABBITMQ_URL", "RABBITMQ_MANAGEMENT_URL")
    }
    answer = subprocess.run(
        [sys.executable, "-m", "pipeline.front.cli.main", "submit", "single"],
        cwd=tmp_path,
        text=True,
        env={**clean, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 1
    assert 'DATABASE_URL is not set: export it, or run "pipeline services start"' in answer.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("submit", "single", "{oops"), "the body is not JSON"),
        (("submit", "single", "[1]"), "must be a JSON object"),
        (("status", "17"), "is not a job id"),
        (("status", "01a1e35a-acab-720d-861a-d34a819014b2"), "there is no job"),
        (("cancel", "01a1e35a-acab-720d-861a-d34a819014b2"), "does not exist or has already finished"),
        (("replay", "01a1e35a-acab-720d-861a-d34a819014b2"), "is not failed"),
    ],
)
def test_the_command_line_refuses_in_one_sentence(place: Place, words: tuple[str, ...], says: str) -> None:
    answer = pipeline_here(place, *words)
    assert answer.returncode == 1 and says in answer.stderr and "Traceback" not in answer.stderr


def test_the_command_line_follows_a_job_from_submit_to_dead_and_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """submit, status, dead list, retry, discard. Into a pipe nothing is cut, unless somebody says how wide it is."""
    import json

    monkeypatch.delenv("COLUMNS", raising=False)
    place.worker(threads=2)
    job = json.loads(pipeline(place, "submit", "single", '{"do": "permanent"}', "--json").stdout)["id"]
    place.until(lambda: place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'failed'"), 20, "the failure")
    shown = json.loads(pipeline(place, "status", job, "--json").stdout)
    assert shown["job"]["status"] == "failed" and [p["part"] for p in shown["timeline"]][-1] == "running"
    listed = pipeline(place, "dead", "list").stdout
    assert "the document does not exist" in listed and job in listed
    assert pipeline(place, "replay", job).returncode == 0
    place.until(lambda: len(place.executions()) == 2, 20, "the second run")
    place.until(lambda: place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'failed'"), 20, "the failure")
    assert pipeline(place, "dead", "discard", job, "--reason", "a known hole").returncode == 0
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'cancelled'") == 1
    assert "alive" in pipeline(place, "workers").stdout
