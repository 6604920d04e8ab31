"""The workflows that this process has declared, as plain values. Nothing connects, and no broker is touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pipeline.declare.codec import (
    Codec,
    DoesNotFit,
    Earlier,
    annotation_of,
    check_body,
    codec_of,
    parameters_of,
    returned,
)
from pipeline.declare.errors import BadInput
from pipeline.declare.job import PLAIN
from pipeline.declare.phase import PhaseSpec
from pipeline.declare.waits.children import EarlierEnds, Ends
from pipeline.declare.waits.limits import check_filled
from pipeline.declare.waits.turns import Turns

if TYPE_CHECKING:
    from pipeline.declare.schedules.schedule import ScheduleSpec

Work = Callable[..., Any]
_workflows: dict[str, DeclaredWorkflow] = {}


Event = Literal["succeeded", "failed", "cancelled"]
# What a hook's job is told of the one that ended, beside what is given.
TOLD = ("job", "workflow", "phase", "state", "error", "body", "result", "ended_at")
# Called with the job for every attempt; what it returns is entered before the phase and left after it.
Around = Callable[[Any], AbstractContextManager[Any]]


# As much of a hook's job's body is its own; the rest is for what it is told.
LONGEST_GIVEN = 16384


@dataclass(frozen=True)
class Hook:
    """When a job ends so, a job of the workflow ``submits`` is submitted; ``body``: JSON, part of that job's."""

    event: Event
    submits: str
    body: str = "{}"

    @property
    def said(self) -> str:
        """When, as a sentence has it."""
        return {"succeeded": "succeeds", "failed": "fails", "cancelled": "is cancelled"}[self.event]


@dataclass(frozen=True)
class DeclaredPhase:
    """A phase's options, the function that does its work, and the types of what it takes and returns.

    ``around``: what its workflow has around every attempt.
    """

    spec: PhaseSpec
    work: Work
    body: Codec = PLAIN
    result: Codec = PLAIN
    takes: tuple[Earlier | EarlierEnds, ...] = ()
    around: Sequence[Around] = ()


@dataclass(frozen=True)
class DeclaredWorkflow:
    """Phases in their order. ``module`` is where it is declared: a child process imports that, too."""

    name: str
    module: str
    body: Codec = PLAIN
    result: Codec | None = None
    phases: list[DeclaredPhase] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    around: list[Around] = field(default_factory=list)
    schedules: list[ScheduleSpec] = field(default_factory=list)
    # How jobs with one key go beside each other.
    turns: Turns | None = None

    def hook(self, hook: Hook) -> None:
        """Add a hook. ValueError if it is there already, if what is given does not fit the workflow that it submits, or
        if jobs would submit one another for ever."""
        if self.name in _hooked(hook.submits):
            raise ValueError(f"workflow {self.name} cannot submit {hook.submits}, whose hooks lead back to it")
        if hook in self.hooks:
            raise ValueError(
                f"workflow {self.name} already submits {hook.submits} with this body when a job {hook.said}"
            )
        if taken := sorted(json.loads(hook.body).keys() & set(TOLD)):
            raise ValueError(f"workflow {self.name}: what a hook is told has these names already: {', '.join(taken)}")
        if len(hook.body.encode()) > LONGEST_GIVEN:
            raise ValueError(f"workflow {self.name}: a hook's own body has at most {LONGEST_GIVEN} bytes")
        _check_given(self.name, hook)
        self.hooks.append(hook)

    def schedule(self, spec: ScheduleSpec) -> None:
        """Add a schedule; its name is unique in the workflow."""
        if any(schedule.name == spec.name for schedule in self.schedules):
            raise ValueError(f"workflow {self.name} already has a schedule named {spec.name!r}")
        self.schedules.append(spec)

    def declare(self, spec: PhaseSpec, work: Work, local: Mapping[str, Any] | None = None) -> DeclaredPhase:
        """Add the next phase. ``local``: where its annotations may look beside its module."""
        if any(phase.spec.name == spec.name for phase in self.phases):
            raise ValueError(f"workflow {self.name} already has a phase named {spec.name!r}")
        parameters = parameters_of(spec.queue, work)
        for job in parameters[:1]:
            check_body(spec.queue, work, job.name, self.body.annotation, local)
        takes = self._takes(spec, work, parameters[1:], local)
        result = codec_of(returned(work, local=local))
        declared = DeclaredPhase(spec, work, self.body, result, takes, self.around)
        self.phases.append(declared)
        return declared

    def _takes(
        self, spec: PhaseSpec, work: Work, results: Sequence[Parameter], local: Mapping[str, Any] | None
    ) -> tuple[Earlier | EarlierEnds, ...]:
        earlier = {phase.spec.name.replace("-", "_"): phase.spec.name for phase in self.phases}
        found: list[Earlier | EarlierEnds] = []
        for one in results:
            if one.name in earlier:
                hint = annotation_of(work, one.name, local)
                if (get_origin(hint) or hint) is Ends:
                    found.append(EarlierEnds(one.name, earlier[one.name], codec_of(*get_args(hint) or (Any,))))
                else:
                    found.append(Earlier(one.name, earlier[one.name], codec_of(hint), one.default))
            elif one.default is Parameter.empty:
                raise TypeError(
                    f"phase {spec.queue} takes {one.name!r}, which is no earlier phase of the workflow; "
                    f"its earlier phases: {', '.join(earlier) or 'none'}"
                )
        return tuple(found)

    def last_result(self) -> Codec:
        """How the result of the whole job is read."""
        return self.result or (self.phases[-1].result if self.phases else PLAIN)


def _hooked(workflow: str) -> set[str]:
    """The workflow, and all that its hooks submit, and theirs."""
    found, new = set[str](), {workflow}
    while new:
        found |= new
        new = {hook.submits for name in new if name in _workflows for hook in _workflows[name].hooks} - found
    return found


def _check_given(workflow: str, hook: Hook) -> None:
    """What its job is told is not known yet; what is given must be right, and all that is asked for beside that."""
    told: dict[str, Any] = dict.fromkeys(TOLD, "")
    try:
        body_codec(hook.submits).decode(json.dumps({**json.loads(hook.body), **told}))
    except DoesNotFit as error:
        if wrong := [
            f"{field}: {said}" for field, said in error.mistakes if field and field.partition(".")[0] not in told
        ]:
            said = "; ".join(wrong)
            raise ValueError(f"what workflow {workflow} gives does not fit {hook.submits}, its hook: {said}") from None


def declare_workflow(
    name: str, module: str, body: Codec = PLAIN, result: Codec | None = None, turns: Turns | None = None
) -> DeclaredWorkflow:
    """Add a workflow; its name is unique in a process."""
    PhaseSpec(workflow=name, name="check")
    if name in _workflows:
        raise ValueError(
            f"a workflow named {name!r} is already declared in {_workflows[name].module}; names are unique in a process"
        )
    _workflows[name] = DeclaredWorkflow(name, module, body, result, turns=turns)
    return _workflows[name]


def workflows() -> dict[str, DeclaredWorkflow]:
    """Every workflow declared in this process, by name."""
    return dict(_workflows)


def body_codec(workflow: str) -> Codec:
    """How its bodies travel; as plain JSON if this process does not know the workflow."""
    if not isinstance(workflow, str):  # the session was forgotten, and the body stands in its place
        raise TypeError(
            f"the name of the workflow is a text, not {workflow!r:.100}: submit(session, 'orders', {{...}}), "
            "or submit(None, 'orders', {...}) for a transaction of its own"
        )
    known = _workflows.get(workflow)
    return PLAIN if known is None else known.body


def check_limits(workflow: str, encoded: bytes | str) -> None:
    """BadInput if this body, in JSON, does not fill the name of a limit of its workflow."""
    known = _workflows.get(workflow)
    for phase in known.phases if known else ():
        if phase.spec.rate_limit is not None:
            check_filled(phase.spec.rate_limit, encoded)


def result_codec(workflow: str) -> Codec:
    """How the results of its jobs are read; as plain JSON if this process does not know the workflow."""
    known = _workflows.get(workflow)
    return PLAIN if known is None else known.last_result()


class BadBody(BadInput):
    """A body that is not of its workflow's type. ``mistakes``: by field, what is wrong with it."""

    def __init__(self, workflow: str, error: DoesNotFit, what: str = "the body") -> None:
        super().__init__(f"{what} does not fit workflow {workflow}: {error}")
        self.mistakes = error.mistakes


def read_body(workflow: str, body: dict[str, Any]) -> Any:
    """A body that came from outside as JSON, as a value of its workflow's type; as it is where that is not known.

    BadBody if it does not fit.
    """
    codec = body_codec(workflow)
    try:
        return body if codec is PLAIN else codec.decode(json.dumps(body))
    except DoesNotFit as error:
        raise BadBody(workflow, error) from None


class BadEvent(BadInput):
    """An event's body that is not of the type that the waiting phase returns. ``mistakes``: by field."""

    def __init__(self, event: str, phase: str, error: DoesNotFit) -> None:
        super().__init__(f"the body of event {event!r} does not fit what phase {phase} waits for: {error}")
        self.mistakes = error.mistakes


def check_event_body(workflow: str, phase: str, event: str, body: bytes) -> None:
    """BadEvent if this JSON cannot be the result of the phase, as far as this process knows it."""
    known = _workflows.get(workflow)
    codec = next((one.result for one in known.phases if one.spec.name == phase), PLAIN) if known else PLAIN
    try:
        codec.decode(body)
    except DoesNotFit as error:
        raise BadEvent(event, f"{workflow}.{phase}", error) from None


def find_phase(queue: str) -> DeclaredPhase:
    """The phase that serves ``queue``."""
    for workflow in _workflows.values():
        for phase in workflow.phases:
            if phase.spec.queue == queue:
                return phase
    raise LookupError(f"no phase serves queue {queue}")
