"""Rule 15: code and database agree on purpose. Two versions of a workflow side by side lose no phase."""

from __future__ import annotations

import subprocess

from pipeline import submit_many
from tests.commands import pipeline
from tests.place import ROOT, Place

VERSION = """
from pipeline import Job, Workflow
from tests.workflows import record
survey = Workflow("survey")
for name in {phases!r}:
    survey.phase(name, pool={pool})(record)
"""


def version(place: Place, name: str, phases: list[str], pool: int | None = None) -> dict[str, str]:
    """The settings of processes that run this version of the workflow's module."""
    folder = place.folder / name
    folder.mkdir()
    (folder / "survey.py").write_text(VERSION.format(phases=phases, pool=pool))
    return {"PIPELINE_WORKFLOWS": "survey", "PYTHONPATH": f"{ROOT}:{folder}"}


def chain(place: Place) -> list[str]:
    return [
        row["phase"]
        for row in place.rows(
            "SELECT phase FROM pipeline.phases WHERE workflow = 'survey' AND position > 0 ORDER BY position"
        )
    ]


def stop(worker: subprocess.Popen[bytes]) -> None:
    worker.terminate()
    assert worker.wait(30) == 0


def test_an_old_worker_that_restarts_beside_new_ones_skips_no_phase(place: Place) -> None:
    """F10: after the migration to a, x, b it says what differs, and works by the chain in force."""
    old, new = version(place, "old", ["a", "b"]), version(place, "new", ["a", "x", "b"], pool=7)
    before = place.worker(settings=old)
    assert chain(place) == ["a", "b"], "the first worker of a new workflow registers it"
    migrated = pipeline(place, "migrate", **new)
    assert migrated.returncode == 0 and "survey: a → x → b" in migrated.stderr
    stop(before)
    # The new version has the new phase's queue alone, so that the old one does all the rest.
    place.worker(settings=new, queues=("survey.x",))
    place.worker(settings=old)
    assert chain(place) == ["a", "x", "b"]
    jobs = submit_many(None, "survey", [{"n": n} for n in range(20)])
    assert {row["status"] for row in place.finished(*jobs)} == {"succeeded"}
    for job in jobs:
        assert [attempt["phase"] for attempt in place.attempts(job)] == ["a", "x", "b"]
    said = place.logs()
    assert "code='a → b' database='a → x → b'" in said and "option=chain phase=x workflow=survey" in said, said
    assert "code=None database=7" in said and 'run "pipeline migrate"' in said


def test_a_restart_changes_no_option_either(place: Place) -> None:
    """Only the migration does; a worker of the same version has nothing to say."""
    narrow, wide = version(place, "narrow", ["a"], pool=2), version(place, "wide", ["a"], pool=9)
    place.worker(settings=narrow)
    place.worker(settings=wide)
    assert place.count("SELECT pool FROM pipeline.phases WHERE workflow = 'survey'") == 2
    assert place.logs().count("differs from the database") == 1
    assert pipeline(place, "migrate", **wide).returncode == 0
    assert place.count("SELECT pool FROM pipeline.phases WHERE workflow = 'survey'") == 9


def test_jobs_of_a_phase_that_is_gone_are_found_and_moved(place: Place) -> None:
    """migrate and verify name them and the command; after it they go through the rest of the chain."""
    old, new = version(place, "old", ["a", "b", "c"]), version(place, "new", ["a", "b2", "c"])
    first = place.worker(settings=old, queues=("survey.a",))
    jobs = submit_many(None, "survey", [{}] * 3)
    waiting = "SELECT count(*) FROM pipeline.jobs WHERE phase = 'b' AND status = 'pending'"
    place.until(lambda: place.count(waiting) == 3, what="the jobs to wait before b")
    stop(first)
    migrated = pipeline(place, "migrate", **new)
    assert 'run "pipeline move survey.b PHASE"' in " ".join(migrated.stderr.split())
    found = pipeline(place, "verify", **new)
    assert found.returncode == 1 and "survey.b" in found.stdout
    refused = pipeline(place, "move", "survey.b", "d", **new)
    assert refused.returncode == 1 and "its phases: a, b2, c" in refused.stderr
    moved = pipeline(place, "move", "survey.b", "b2", **new)
    assert (moved.returncode, moved.stdout.strip()) == (0, "3 jobs moved from survey.b to b2")
    place.worker(settings=new)
    assert {row["status"] for row in place.finished(*jobs)} == {"succeeded"}
    assert [attempt["phase"] for attempt in place.attempts(jobs[0])] == ["a", "b2", "c"]
    assert pipeline(place, "verify", **new).returncode == 0
