"""Managers around attempts that raise, swallow and are interrupted: in threads, on the event loop, in children."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from pipeline.testing import in_memory
from tests.around_workflows import KINDS
from tests.place import Place

DOES = {
    "nothing": ["succeeded"],
    "raises before": ["retried", "succeeded"],
    "raises after": ["retried", "succeeded"],
    "swallows": ["failed"],
}
LEFT = {
    "nothing": ["entered", "worked", "left"],
    "raises before": ["entered", "left by Transient", "entered", "worked", "left"],
    "raises after": ["entered", "worked", "left by Transient", "entered", "worked", "left"],
    "swallows": ["entered", "worked", "left"],
}


@pytest.fixture
def working(place: Place) -> Iterator[Place]:
    place.worker(PIPELINE_WORKFLOWS="tests.around_workflows")
    yield place


def noted(place: Place, job: UUID) -> list[str]:
    lines = [line.split(" ", 2) for line in place.record_path.read_text().splitlines()]
    return [what for of, _, what in lines if of == str(job)]


def test_what_a_manager_raises_counts_and_what_it_swallows_too(working: Place) -> None:
    """An error before the phase or after it is the attempt's; an error of the phase stays one."""
    jobs = {(kind, does): workflow.submit({"does": does}) for kind, workflow in KINDS.items() for does in DOES}
    working.finished(*(job.id for job in jobs.values()), timeout=60)
    assert {key: [one["outcome"] for one in working.attempts(job.id)] for key, job in jobs.items()} == {
        (kind, does): DOES[does] for kind, does in jobs
    }
    assert {key: noted(working, job.id) for key, job in jobs.items()} == {key: LEFT[key[1]] for key in jobs}
    errors = {str(working.job(job.id)["error_message"])[:34] for key, job in jobs.items() if key[1] == "swallows"}
    assert errors == {"Permanent: nobody is to hide this "}


def test_a_cancelled_attempt_leaves_its_managers(working: Place) -> None:
    """In a thread and on the loop they see what stops it. A child is killed: of it nothing is left that could."""
    jobs = {kind: workflow.submit({"does": "takes long"}) for kind, workflow in KINDS.items()}
    for job in jobs.values():
        working.until(lambda: working.record_path.exists() and "worked" in noted(working, job.id), 30, "the work")  # noqa: B023  within the round
        assert job.cancel()
    expected = {"thread": "left by Interrupted", "loop": "left by CancelledError"}
    for kind, last in expected.items():
        working.until(lambda: noted(working, jobs[kind].id)[-1] == last, 30, f"the manager of {kind} to be left")  # noqa: B023  within the round
    # Their places are free: the next ones of all kinds run.
    after = {kind: workflow.submit({"does": "nothing"}) for kind, workflow in KINDS.items()}
    assert {job.result(timeout=60) for job in after.values()} == {"done"}
    assert {row["status"] for row in working.finished(*(job.id for job in jobs.values()))} == {"cancelled"}
    for kind in ("child", "loop-in-child"):
        assert noted(working, jobs[kind].id) == ["entered", "worked"]


def test_the_same_in_memory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_RECORD", str(tmp_path_factory.mktemp("around") / "record"))
    with in_memory() as run:
        jobs = {(kind, does): run.submit(workflow, {"does": does}) for kind, workflow in KINDS.items() for does in DOES}
        run.drain()
        run.advance(seconds=1)
        run.drain()
        assert {key: [outcome for _, outcome in job.outcomes] for key, job in jobs.items()} == {
            key: DOES[key[1]] for key in jobs
        }
