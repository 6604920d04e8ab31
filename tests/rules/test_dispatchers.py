"""What an app starts work through: the same options as ``submit``, and a stand-in for its tests."""

from __future__ import annotations

from dataclasses import fields
from inspect import Parameter, signature
from typing import Any
from uuid import UUID

import pytest

from pipeline import Done, Job, JobDispatcher, MemoryDispatcher, TransactionDispatcher, run_handler
from pipeline.declare.options import ManyJobs, OneJob
from pipeline.journey import submit as steer
from pipeline.testing import FakeServices


def options(function: Any, *leave_out: str) -> dict[str, Parameter]:
    return {name: one for name, one in signature(function).parameters.items() if name not in leave_out}


@pytest.mark.parametrize("dispatcher", [JobDispatcher, MemoryDispatcher, TransactionDispatcher])
@pytest.mark.parametrize("name", ["submit", "submit_many"])
def test_a_dispatcher_takes_the_options_of_submit(dispatcher: type, name: str) -> None:
    """Type checkers know them by one declaration; one that is new in submit must be there, too."""
    kind = OneJob if name == "submit" else ManyJobs
    taken = options(getattr(dispatcher, name), "self")
    assert taken.pop("options").annotation == f"Unpack[{kind.__name__}]"
    offered = options(getattr(steer, name), "caller")
    assert {*taken, *kind.__annotations__} == {*offered}
    assert all(taken[one] == offered[one] for one in taken)
    assert {one: str(hint.__forward_arg__) for one, hint in kind.__annotations__.items()} == {
        one: offered[one].annotation for one in kind.__annotations__
    }


def test_a_transaction_dispatcher_passes_every_option_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name."""
    passed: list[dict[str, Any]] = []
    for name in ("submit", "submit_many"):
        monkeypatch.setattr(steer, name, lambda caller, workflow, what, **given: passed.append(given))
        kind = OneJob if name == "submit" else ManyJobs
        wanted: dict[str, Any] = {key: object() for key in kind.__annotations__}
        getattr(TransactionDispatcher(), name)("orders", {}, **wanted)
        assert passed.pop() == wanted


def test_a_memory_dispatcher_remembers_what_was_asked_of_it() -> None:
    """In its order, and each job has an id of its own."""
    dispatcher = MemoryDispatcher()
    ids = [dispatcher.submit("orders"), *dispatcher.submit_many("orders", [{"n": 1}, {"n": 2}], priority=9)]
    assert len(set(ids)) == 3
    assert dispatcher.submitted == [("orders", {}), ("orders", {"n": 1}), ("orders", {"n": 2})]
    assert dispatcher.cancel(ids[0]) and dispatcher.cancelled == ids[:1]


def test_a_handler_runs_on_a_job_made_up_for_it() -> None:
    """Whatever a Job can be given."""
    seen: list[Job] = []

    def handler(job: Job) -> Done:
        seen.append(job)
        return Done({"n": job.body["n"]})

    given: dict[str, Any] = {
        "id": UUID(int=7),
        "workflow": "orders",
        "phase": "check-stock",
        "results": {"earlier": 1},
        "attempt": 2,
        "fence": 5,
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
        "services": FakeServices(),
    }
    assert run_handler(handler, {"n": 1}, **given).result == {"n": 1}
    assert {one.name for one in fields(Job) if one.init} == {"body", *given}
    assert {name: getattr(seen[0], name) for name in given} == given
    run_handler(handler, {"n": 1})
    assert {**vars(seen[1]), "services": None} == {**vars(Job({"n": 1})), "services": None}
