"""``pipeline status`` and ``pipeline logs``: why a job failed, on a terminal."""

from __future__ import annotations

import json

from pipeline.journey.submit import submit
from tests.commands import pipeline_here
from tests.db import steps
from tests.place import Place


def test_why_a_job_failed_is_printed_with_it(place: Place) -> None:
    """The cause, the newest traceback and the last lines; the other attempts by another command."""
    place.worker()
    job = submit(None, "single", {"do": "speak", "until": 99})
    place.finished(job)
    said = pipeline_here(place, "status", str(job)).stdout
    assert "cause: ValueError at actions.py:" in said
    assert "ValueError: no price, try 3" in said and "structured words colour=red" in said and "try 2\n" not in said
    assert f"pipeline logs {job}" in said
    said = pipeline_here(place, "logs", str(job)).stdout
    assert said.index("try 1 (fence 1): retried") < said.index("try 2\n") < said.index("try 3 (fence 3): exhausted")
    found = json.loads(pipeline_here(place, "logs", str(job), "--fence", "2", "--json").stdout)
    assert [one["fence"] for one in found] == [2] and found[0]["traceback"].endswith("no price, try 2")


def test_what_others_wrote_does_not_move_the_cursor(place: Place) -> None:
    """Nor is it markup."""
    hold = steps.held(place.db)
    steps.fail(place.db, hold, "no")
    place.db.execute("SELECT pipeline.keep_log(%s, %s, %s, NULL)", (hold.job, hold.fence, "[red]a\x1b[2Jb"))
    assert "[red]a�[2Jb" in pipeline_here(place, "logs", str(hold.job)).stdout


def test_a_job_that_kept_nothing_says_so(place: Place) -> None:
    """And one that does not exist is an error."""
    hold = steps.held(place.db)
    assert "nothing was kept" in pipeline_here(place, "logs", str(hold.job)).stdout
    answer = pipeline_here(place, "logs", "01a1e35a-acab-720d-861a-d34a819014b2")
    assert answer.returncode == 1 and "there is no job" in answer.stderr
