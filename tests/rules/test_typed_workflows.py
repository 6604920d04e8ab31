"""Typed workflows: bodies, and the results that phases take by name."""

from __future__ import annotations

from uuid import uuid4

import pytest
from pydantic import BaseModel

from pipeline import Job, Permanent, Workflow
from pipeline.declare.job import as_done, perform


class Wish(BaseModel):
    left: int


def named() -> Workflow[Wish, int]:
    return Workflow(f"typed-{uuid4().hex[:12]}", body=Wish, result=int)


def test_a_phase_takes_the_results_of_earlier_ones_by_their_names() -> None:
    """Also of one with dashes; an argument with a default may go without."""
    workflow = named()

    @workflow.phase("look-up")
    def find(job: Job[Wish]) -> int:
        return 3

    @workflow.phase
    def add(job: Job[Wish], look_up: int, more: int = 4) -> int:
        return look_up + job.body.left + more

    [_, declared] = workflow.phases
    job = Job(Wish(left=1), results={"look-up": 3})
    assert as_done(perform(declared, job)).result == 8
    assert add(job, 3, more=0) == 4


def test_an_argument_that_is_no_earlier_phase_is_refused_at_declaration() -> None:
    """With the names that there are: a typing mistake would else fail every job."""
    workflow = named()

    @workflow.phase
    def crawl(job: Job[Wish]) -> list[str]:
        return []

    with pytest.raises(TypeError, match=r"takes 'crawls', which is no earlier phase .* its earlier phases: crawl$"):
        workflow.phase("look")(lambda job, crawls: None)


def test_a_result_that_is_missing_or_of_another_type_fails_the_job_with_its_name() -> None:
    """None is one, if the annotation says so."""
    workflow = named()

    @workflow.phase
    def crawl(job: Job[Wish]) -> list[str]:
        return []

    @workflow.phase
    def strict(job: Job[Wish], crawl: list[str]) -> None: ...

    @workflow.phase
    def lenient(job: Job[Wish], crawl: list[str] | None) -> None:
        assert crawl is None

    _, strictly, leniently = workflow.phases
    with pytest.raises(Permanent, match="takes the result of crawl, which has returned nothing"):
        perform(strictly, Job(Wish(left=1)))
    with pytest.raises(Permanent, match="takes the result of crawl, which returned what does not fit: 0: Input"):
        perform(strictly, Job(Wish(left=1), results={"crawl": [3]}))
    perform(leniently, Job(Wish(left=1)))


@pytest.mark.parametrize("body", [int, list[int], str])
def test_a_body_is_an_object(body: type) -> None:
    """So that a later version can add to it."""
    with pytest.raises(TypeError, match="body is a pydantic model, a dataclass or a TypedDict, not"):
        Workflow(f"typed-{uuid4().hex[:12]}", body=body)
