"""The table of steps is complete, has no dead ends by accident, and is the one PostgreSQL enforces."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipeline.declare.states import FINAL, NEXT, Status, Step, allowed

ENGINE = Path(__file__).parents[2] / "pipeline/store/migrations/versions/0101_second_generation.sql"


def test_only_failed_and_cancelled_jobs_have_a_way_on_and_only_replay_makes_them_run_again() -> None:
    """Succeeded has no way out; failed can be discarded, too."""
    ways_out = {(status, step): after for (status, step), after in NEXT.items() if status in FINAL}
    assert ways_out == {
        (Status.FAILED, Step.REPLAY): Status.PENDING,
        (Status.CANCELLED, Step.REPLAY): Status.PENDING,
        (Status.FAILED, Step.DISCARD): Status.CANCELLED,
    }


def test_every_status_can_be_reached_from_a_submitted_job() -> None:
    """Nothing in the enum is a dead letter."""
    reached = {Status.PENDING}
    for _ in Status:
        reached |= {after for (before, _step), after in NEXT.items() if before in reached}
    assert reached == set(Status)


def test_every_status_that_is_not_final_can_still_end() -> None:
    """G1: from anywhere there is a way to a final state."""
    ending = set(FINAL)
    for _ in Status:
        ending |= {before for (before, _step), after in NEXT.items() if after in ending}
    assert ending == set(Status)


def test_every_step_is_used() -> None:
    """A step that no status allows would be a name without a meaning."""
    assert {step for _status, step in NEXT} == set(Step)


def test_any_job_that_is_not_final_can_be_cancelled() -> None:
    """G5: cancel has no blind spot."""
    assert {status for status in Status if allowed(status, Step.CANCEL)} == set(Status) - FINAL


def test_only_three_steps_make_a_job_run() -> None:
    """Nothing runs without a new fence."""
    makers = {step for (_status, step), after in NEXT.items() if after is Status.RUNNING}
    assert makers == {Step.CLAIM, Step.TAKE_OVER, Step.CONTINUE}


@given(st.sampled_from(sorted(product(Status, Step))))
def test_a_step_is_allowed_exactly_when_the_table_has_it(pair: tuple[Status, Step]) -> None:
    """``allowed`` is the table and nothing else."""
    assert allowed(*pair) == (pair in NEXT)


def test_postgresql_knows_the_same_statuses() -> None:
    """The CHECK constraint repeats the enum, word for word."""
    assert _listed("status_is_known") == {status.value for status in Status}


def test_postgresql_completes_a_job_exactly_in_the_final_statuses() -> None:
    """The CHECK constraint repeats FINAL."""
    assert _listed("completed_when_final") == {status.value for status in FINAL}


def _listed(constraint: str) -> set[str]:
    found = re.search(rf"CONSTRAINT {constraint}\s+CHECK \(+status IN \(([^)]*)\)", ENGINE.read_text())
    assert found is not None, f"{constraint} is not in {ENGINE.name}"
    return set(re.findall(r"'(\w+)'", found[1]))
