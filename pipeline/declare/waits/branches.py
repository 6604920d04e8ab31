"""What a job may do after a phase beside continuing with the next one. A phase returns what these return."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from pipeline.declare.codec import DoesNotFit
from pipeline.declare.errors import BadInput, Misuse, Snooze
from pipeline.declare.job import Done
from pipeline.declare.lossless import without_nul
from pipeline.declare.phase import BODY_LIMIT, PhaseSpec
from pipeline.declare.registry import body_codec, workflows
from pipeline.declare.waits.next import Children, Next, Policy, batch_of, check_event, check_policy, seconds_of

if TYPE_CHECKING:
    from pipeline.declare.job import Job


def goto(job: Job[Any], phase: object, result: object) -> Done[Any]:
    """Continue with this phase of the job's workflow."""
    spec = getattr(phase, "spec", None)
    workflow, name = (spec.workflow, spec.name) if spec is not None else (job.workflow, phase)
    declared = workflows().get(job.workflow)
    names = [one.spec.name for one in declared.phases] if declared else [name]
    if workflow != job.workflow or name not in names:
        raise Misuse(
            f"phase {job.phase} goes to {workflow}.{name}, which is no phase of workflow {job.workflow}; "
            f"its phases: {', '.join(map(str, names))}"
        )
    return Done(result, next=Next(phase=cast(str, name)))


def wait_for(event: str, timeout: timedelta | None, default: object) -> Done[Any]:
    """Continue when the job is told of the event, or when the time is over."""
    after = None if timeout is None else seconds_of("timeout", timeout)
    return Done(default, next=Next(event=check_event(event), after=after))


def spawn(job: Job[Any], workflow: Any, bodies: Iterable[object], policy: Policy, priority: int) -> Children[Any]:
    """Children of this attempt."""
    check_policy(policy)
    name = workflow if isinstance(workflow, str) else workflow.name
    codec = body_codec(name)
    encoded = [_body(name, codec.encode, body, place) for place, body in enumerate(bodies, 1)]
    batch = batch_of(job.id, job.phase, job.fence)
    return Children(name, encoded, policy, priority, batch, job.traceparent)


def _body(workflow: str, encode: Any, body: object, place: int) -> str:
    try:
        encoded = without_nul(encode(body))
    except DoesNotFit as error:
        raise BadInput(f"body {place} does not fit workflow {workflow}: {error}") from None
    except ValueError as error:
        raise BadInput(f"body {place} cannot be stored as JSON: {error}") from None
    if len(encoded) > BODY_LIMIT:
        raise BadInput(f"body {place} has {len(encoded)} bytes, the limit is {BODY_LIMIT}: send a reference")
    return encoded.decode()


def asleep(name: str, duration: timedelta) -> Snooze:
    """The job sleeps; the name is kept with that as a step, so that it does not sleep again."""
    error = Snooze(seconds_of("the time to sleep", duration), "sleep")
    error.step = name
    return error


def next_of(spec: PhaseSpec, done: Done[Any]) -> str | None:
    """What comes after the phase, as the engine reads it; None: the next phase, at once. Misuse if it cannot be."""
    if done.after is not None:
        following = Next(after=seconds_of("Done(after=…)", done.after))
    elif done.next is not None:
        following = done.next
    else:
        return None
    declared = workflows().get(spec.workflow)
    if following.waits and declared is not None and declared.phases[-1].spec.name == spec.name:
        raise Misuse(
            f"phase {spec.queue} is the last of its workflow: add a phase that continues when the wait is over"
        )
    return following.encode()
