"""Hooks that cannot be meant are refused where they are declared."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from pipeline import BadInput, Workflow
from pipeline.declare import registry
from pipeline.webhooks import webhook


class Told(BaseModel):
    team: str
    job: str
    result: int


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Workflow[Any, Any]:
    monkeypatch.setattr(registry, "_workflows", dict(registry.workflows()))
    return Workflow("hook-jobs")


def test_workflows_do_not_submit_one_another_for_ever(jobs: Workflow[Any, Any]) -> None:
    two = Workflow("hook-two")
    jobs.on_failure(two)
    with pytest.raises(ValueError, match="workflow hook-two cannot submit hook-jobs, whose hooks lead back to it"):
        two.on_success(jobs)
    with pytest.raises(ValueError, match="whose hooks lead back"):
        jobs.on_cancel(jobs)


def test_what_is_given_fits_the_workflow_that_it_is_for(jobs: Workflow[Any, Any]) -> None:
    """What will be told is not known yet, and not complained about."""
    tell = Workflow("hook-tell", body=Told)
    with pytest.raises(
        ValueError, match=r"what workflow hook-jobs gives does not fit hook-tell.*: team: Field required"
    ):
        jobs.on_success(tell)
    jobs.on_success(tell, team="sales")
    jobs.on_success(tell, team="support")
    with pytest.raises(ValueError, match="already submits hook-tell with this body when a job succeeds"):
        jobs.on_success(tell, team="sales")


@pytest.mark.parametrize("url", ["ftp://example.org/", "example.org", "https://" + "x" * 2048])
def test_a_webhook_without_an_address_is_refused(jobs: Workflow[Any, Any], url: str) -> None:
    with pytest.raises(ValueError, match="does not fit webhook, its hook: url: "):
        jobs.on_success(webhook, url=url)
    with pytest.raises(ValueError, match="url: Field required"):
        jobs.on_success(webhook)


def test_a_secret_is_named_and_never_given(jobs: Workflow[Any, Any]) -> None:
    with pytest.raises(ValueError, match="secret: ") as refused:
        jobs.on_success(webhook, url="https://example.org/", secret="whsec_abcdefghijkl")
    assert "abcdefghijkl" not in str(refused.value)


def test_words_of_the_hook_and_too_many_words_are_refused(jobs: Workflow[Any, Any]) -> None:
    plain = Workflow("hook-plain")
    with pytest.raises(ValueError, match="has these names already: result"):
        jobs.on_success(plain, result=1)
    with pytest.raises(ValueError, match="at most 16384 bytes"):
        jobs.on_success(plain, text="x" * 20_000)
    with pytest.raises(BadInput, match="NUL"):
        jobs.on_success(plain, text="\0")
