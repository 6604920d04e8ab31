"""One phase of a workflow, as the code that declares it has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, Generic, Protocol
from uuid import UUID

from typing_extensions import ParamSpec, TypeVar

from pipeline.declare.job import Job
from pipeline.declare.registry import DeclaredPhase
from pipeline.journey.submit import Requested, request_send

Given = ParamSpec("Given", default=...)
Returned = TypeVar("Returned", default=Any)
JobBody = TypeVar("JobBody")


class Phase(Generic[Given, Returned]):
    """One phase of a workflow. It stays the function that it decorates: call it with a ``Job`` to test it.

    >>> charge(Job({"order": 17}, phase="charge"), check_stock={"left": 3})
    'charged with 00000000-0000-0000-0000-000000000000:charge'
    """

    __name__: str

    def __init__(self, declared: DeclaredPhase) -> None:
        update_wrapper(self, declared.work)
        self.spec = declared.spec
        self.work = declared.work

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Returned:
        returned: Returned = self.work(*args, **kwargs)
        return returned

    def __repr__(self) -> str:
        return f"<phase {self.spec.queue}>"

    def send(self, job_id: UUID | str) -> Requested:
        """Ask for an existing job to be sent: the same gate, the same outbox. The answer says why not.

        >>> print(check_stock.send(submit(None, "orders", {"order": 17})))
        job ...: accepted (the job is on its way to its queue)
        """
        return request_send(self.spec, job_id)


class Declare(Protocol[JobBody]):
    """Declares the function that it decorates as the next phase."""

    def __call__(
        self, work: Callable[Concatenate[Job[JobBody], Given], Returned], /
    ) -> Phase[Concatenate[Job[JobBody], Given], Returned]: ...
