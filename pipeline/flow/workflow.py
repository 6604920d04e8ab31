"""Declaring a workflow: its phases in order, each a Dramatiq actor on a queue of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, overload
from uuid import UUID

import dramatiq

from pipeline.flow.claim import Interrupted
from pipeline.flow.install import broker
from pipeline.flow.job import Job
from pipeline.flow.request import Requested, request_send
from pipeline.flow.run_phase import run_phase
from pipeline.rules.errors import PipelineError
from pipeline.rules.phase import PhaseSpec

Work = Callable[[Job], object]

_workflows: dict[str, Workflow] = {}


class PhaseActor(dramatiq.Actor[Any, Any]):
    """A phase as Dramatiq sees it. ``work`` is the plain function, for tests without a broker."""

    spec: PhaseSpec
    work: Work

    def send(self, job_id: UUID | str) -> Requested:  # type: ignore[override]
        """Ask for an existing job to be sent: the same gate, the same outbox. Says why not where it cannot be."""
        return request_send(self.spec, job_id)

    def send_with_options(self, *, args: tuple[Any, ...] = (), **options: Any) -> Requested:  # type: ignore[override]
        """As ``send``; delays and other options belong to the workflow, not to a message."""
        unknown = sorted(set(options) - {"kwargs"})
        if unknown or len(args) != 1:
            raise TypeError(f"{self.actor_name}: send one job id and no options (got {', '.join(unknown) or args!r})")
        return self.send(args[0])


class Workflow:
    """Phases in the order of their declaration. A job goes from one to the next when it succeeds."""

    def __init__(self, name: str) -> None:
        PhaseSpec(workflow=name, name="check")
        if name in _workflows:
            raise ValueError(f"a workflow named {name!r} is declared already; names are unique in a process")
        self.name = name
        # Where it is declared: a child process of an isolated phase imports that, too.
        self.module: str = sys._getframe(1).f_globals["__name__"]
        self.phases: list[PhaseActor] = []
        _workflows[name] = self

    @overload
    def phase(self, name: Work) -> PhaseActor: ...

    @overload
    def phase(self, name: str | None = None, **options: Any) -> Callable[[Work], PhaseActor]: ...

    def phase(self, name: str | Work | None = None, **options: Any) -> PhaseActor | Callable[[Work], PhaseActor]:
        """Declare the next phase. Without a name, the function's own is used, with '-' for '_'.

        Options are the fields of PhaseSpec: pool, max_attempts, max_crashes, backoff, time_limit, stale_after,
        isolated, memory_limit, queue_limit, throttle, shared_limit.
        """
        if callable(name):
            return self._declare(name, PhaseSpec(self.name, _dashed(name)))

        def declare(work: Work) -> PhaseActor:
            return self._declare(work, PhaseSpec(self.name, name or _dashed(work), **options))

        return declare

    def _declare(self, work: Work, spec: PhaseSpec) -> PhaseActor:
        def run(*message: object) -> None:
            run_phase(spec, work, message)

        run.__module__ = work.__module__
        actor = PhaseActor(
            run,
            actor_name=spec.actor,
            queue_name=spec.queue,
            priority=len(self.phases),
            broker=broker(),
            # What a phase raises on purpose needs no traceback; its settlement is logged.
            options={"throws": (PipelineError, Interrupted)},
        )
        actor.spec, actor.work = spec, work
        self.phases.append(actor)
        return actor


def workflows() -> dict[str, Workflow]:
    """Every workflow declared in this process, by name."""
    return dict(_workflows)


def find_phase(queue: str) -> PhaseActor:
    """The phase that serves ``queue``."""
    for workflow in _workflows.values():
        for actor in workflow.phases:
            if actor.spec.queue == queue:
                return actor
    raise LookupError(f"no phase serves queue {queue}")


def _dashed(work: Work) -> str:
    return str(getattr(work, "__name__", "phase")).strip("_").replace("_", "-")
