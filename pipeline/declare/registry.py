"""The workflows that this process has declared, as plain values. Nothing connects, and no broker is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.declare.phase import PhaseSpec

if TYPE_CHECKING:
    from pipeline.declare.job import Job

Work = Callable[["Job"], Any]
_workflows: dict[str, DeclaredWorkflow] = {}


@dataclass(frozen=True)
class DeclaredPhase:
    """A phase's options, and the function that does its work."""

    spec: PhaseSpec
    work: Work


@dataclass(frozen=True)
class DeclaredWorkflow:
    """Phases in their order. ``module`` is where it is declared: a child process imports that, too."""

    name: str
    module: str
    phases: list[DeclaredPhase] = field(default_factory=list)


def declare_workflow(name: str, module: str) -> DeclaredWorkflow:
    """Add a workflow; its name is unique in a process."""
    PhaseSpec(workflow=name, name="check")
    if name in _workflows:
        raise ValueError(
            f"a workflow named {name!r} is already declared in {_workflows[name].module}; names are unique in a process"
        )
    _workflows[name] = DeclaredWorkflow(name, module)
    return _workflows[name]


def workflows() -> dict[str, DeclaredWorkflow]:
    """Every workflow declared in this process, by name."""
    return dict(_workflows)


def find_phase(queue: str) -> DeclaredPhase:
    """The phase that serves ``queue``."""
    for workflow in _workflows.values():
        for phase in workflow.phases:
            if phase.spec.queue == queue:
                return phase
    raise LookupError(f"no phase serves queue {queue}")
