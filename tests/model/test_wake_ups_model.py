"""Who waits for a job's result, and the moments of schedules, searched through: see docs/model.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.test_protocol_model import search

RESULTS, SCHEDULES = (Path(__file__).with_name(name) for name in ("results.pml", "schedules.pml"))


@pytest.mark.parametrize("model", [RESULTS, SCHEDULES], ids=lambda model: model.stem)
def test_each_end_is_told_once_and_each_moment_has_one_job(model: Path, tmp_path: Path) -> None:
    """Whatever commits, breaks or dies in between."""
    proof = search(tmp_path, model=model)
    assert not proof.found
    assert proof.complete
    assert proof.states > 400
    assert not proof.never_taken


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        pytest.param("LISTEN_LATE", "ended&&(told==1)", id="listens after it asked to be told: lost"),
        pytest.param("NO_LOOK", "ended&&(told==1)", id="does not look once it has asked: lost"),
        pytest.param("LOCKED_IS_NOTED", "ended&&(told==1)", id="a row that the end holds is not asked for again: lost"),
        pytest.param("NO_LOOK_AFTER_A_BREAK", "ended&&(told==1)", id="does not look after a lost connection: lost"),
        pytest.param("NO_FORGET", "told==1", id="a wait that was answered is kept: twice"),
    ],
)
def test_a_result_is_missed_or_told_twice_without_its_rule(tmp_path: Path, broken: str, said: str) -> None:
    """There is a run that shows it."""
    assert said in search(tmp_path, broken, model=RESULTS).found


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        pytest.param("NO_REVISION", "jobs[seen]==1", id="a step that was worked out from an older row: twice"),
        pytest.param("JOB_FIRST", "jobs[seen]==1", id="the job commits before the step: twice"),
        pytest.param("STEP_FIRST", "jobs[3]==1", id="the step commits before the job: missing"),
        pytest.param("UNTOLD", "jobs[3]==1", id="whoever makes a schedule tells nobody: missing"),
        pytest.param("LOOK_BEFORE_HEARING", "jobs[3]==1", id="what is told during the look is forgotten: missing"),
    ],
)
def test_a_moment_has_no_job_or_two_without_its_rule(tmp_path: Path, broken: str, said: str) -> None:
    """There is a run that shows it."""
    assert said in search(tmp_path, broken, model=SCHEDULES).found
