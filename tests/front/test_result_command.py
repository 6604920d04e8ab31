"""``pipeline result``: the result, or why there is none."""

from __future__ import annotations

import json

from tests.awaiting import finish
from tests.commands import pipeline
from tests.db import steps
from tests.place import Place


def test_a_result_is_printed_and_anything_else_is_one_sentence(place: Place) -> None:
    """Exit code 1 for a job that failed, and for one that has not ended in time."""
    done, failed, late = steps.held(place.db), steps.held(place.db), steps.submit(place.db)
    finish(place, done, {"n": [1, None]})
    steps.fail(place.db, failed, "the shop is closed")
    answer = pipeline(place, "result", str(done.job), "--json")
    assert (answer.returncode, json.loads(answer.stdout)) == (0, {"n": [1, None]})
    for job, said in ((failed.job, "failed in single.act: the shop is closed"), (late, "has not ended within 0.1 s")):
        answer = pipeline(place, "result", str(job), "--wait", "0.1")
        assert answer.returncode == 1 and said in answer.stderr and f"pipeline status {job}" in answer.stderr
