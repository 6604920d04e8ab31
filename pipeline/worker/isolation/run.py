"""Running an attempt in a child process, so that only its own death counts against its job."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson

from pipeline.declare.errors import Cancelled, Crashed, Permanent, PipelineError, Snooze, StaleClaim, Transient
from pipeline.declare.job import AsJson, Done
from pipeline.declare.waits.next import decode_next
from pipeline.journey.checkpoint import Interrupted
from pipeline.observe import failpoints
from pipeline.store.group_commit import Completed, HandedOver, Repeated, Succeeded
from pipeline.worker.isolation import wire
from pipeline.worker.isolation.processes import cause_of_death
from pipeline.worker.isolation.tail import last_words, left_by

if TYPE_CHECKING:
    from pipeline.journey.attempt import Attempt
    from pipeline.worker.isolation.children import Child
    from pipeline.worker.process import WorkerProcess

# Until a new child begins: imports on a busy machine. They are not part of the phase's own time.
START_LIMIT = 120.0
# Children that died before they began, one after the other: their job had no part in it.
STARTS = 3


class ChildTraceback(Exception):
    """Where the phase raised its error, in the words of the process in which it did."""


def run_isolated(worker: WorkerProcess, attempt: Attempt) -> Done | Completed:
    """Run the attempt's phase in a child. Its errors are raised here; its death is raised as Crashed, with the cause.

    A phase with writes is completed by the child itself, under the same fence; then its Completed comes back.
    """
    order = _order(worker, attempt)
    suspect = attempt.crashes > 0
    for _ in range(STARTS):
        child = worker.children.take(attempt.spec.queue, unused=suspect)
        reuse = False
        try:
            answer, died = _listen(worker, attempt, child, order)
            if answer is not None:
                spent = suspect or answer["grown"] or answer["kind"] == "memory"
                reuse = not spent and child.jobs < attempt.spec.max_jobs
        finally:
            worker.children.give_back(child, reuse=reuse)
        if answer is not None:
            return _read(worker, attempt, answer)
        attempt.said.lines = left_by(_tail(worker, attempt))
        _stopped(attempt, child)
        if child.began:
            raise _death(died, _last_words(attempt, child))
    raise Transient(f"{STARTS} child processes died before they began; {_how(died)}")


def _listen(
    worker: WorkerProcess, attempt: Attempt, child: Child, order: bytes
) -> tuple[dict[str, Any] | None, int | None]:
    """The child's answer; or None, and its exit code if anybody is left to tell it."""
    # One that waited for this job begins at once. A new one is given its time to start.
    new = child.jobs == 0
    _deadline(worker, attempt, START_LIMIT if new else attempt.spec.time_limit)
    _stop_with(attempt, child.end)
    try:
        child.order(order)
        for kind, content in child.messages():
            if kind == wire.BEGAN and new:
                _deadline(worker, attempt, attempt.spec.time_limit)
            elif kind == wire.WAITING:
                attempt.deadline = float("inf")
            elif kind == wire.ANSWER:
                return content, None
            elif kind == wire.DIED:
                return None, content
        return None, None
    finally:
        # From here on an interrupt of this attempt cannot hit the child's next job.
        _stop_with(attempt, None)


def _deadline(worker: WorkerProcess, attempt: Attempt, seconds: float) -> None:
    attempt.deadline = monotonic() + seconds
    worker.held.add(attempt)


def _stop_with(attempt: Attempt, stop: Callable[[], None] | None) -> None:
    """How an interrupt ends the child; one that came before is obeyed now."""
    with attempt._lock:
        attempt.stop = stop
        if attempt.reason is not None and stop is not None:
            stop()


def _stopped(attempt: Attempt, child: Child) -> None:
    """Raise if the child was killed because the attempt was told to stop."""
    if attempt.reason is None:
        return
    if attempt.reason != "time_limit":
        raise Interrupted
    if child.began:
        raise Crashed(f"time limit of {attempt.spec.time_limit:g} s exceeded; the child process was killed")
    raise Transient("the child process did not begin in time and was killed")


def _last_words(attempt: Attempt, child: Child) -> str:
    """Where the phase was when a signal killed it, if Python could say so."""
    found = last_words(list(child.said))
    if found is None:
        return ""
    attempt.said.traceback, place = found
    return f" ({place})" if place else ""


def _death(code: int | None, place: str) -> PipelineError:
    """The job's own crash, unless all children died together, with their fork server."""
    return Snooze(0.0, "fork_server_lost", _how(None)) if code is None else Crashed(f"{_how(code)}{place}")


def _how(code: int | None) -> str:
    return "the child process died with its fork server" if code is None else cause_of_death(code)


def _tail(worker: WorkerProcess, attempt: Attempt) -> str:
    return str(worker.temp_root / f".lines-{attempt.job_id}-{attempt.fence}")


def _order(worker: WorkerProcess, attempt: Attempt) -> bytes:
    order = {
        "queue": attempt.spec.queue,
        "job_id": str(attempt.job_id),
        "fence": attempt.fence,
        "attempts": attempt.attempts,
        "max_attempts": attempt.max_attempts,
        "crashes": attempt.crashes,
        "priority": attempt.priority,
        "first": attempt.first,
        "rate_limit": attempt.rate_limit,
        "body": attempt.body,
        "results": attempt.results,
        "trace_id": attempt.trace_id,
        "span_id": attempt.span_id,
        "span": attempt.job.span if attempt.job else None,
        "temp_root": str(worker.temp_root),
        "tail": _tail(worker, attempt),
        "worker": worker.id,
        "worker_no": worker.no,
        "dies": failpoints.armed and failpoints.take(f"phase.ended@{attempt.spec.queue}") is not None,
    }
    return orjson.dumps(order) + b"\n"


def _read(worker: WorkerProcess, attempt: Attempt, answer: dict[str, Any]) -> Done | Completed:
    if attempt.job is not None:
        attempt.job.has_folder = answer["folder"]
    match answer["kind"]:
        case "done":
            result = None if (text := answer["result"]) is None else AsJson(text)
            return Done(result, next=decode_next(answer["following"]))
        case "succeeded":
            return Succeeded()
        case "handed_over":
            return HandedOver()
        case "repeated":
            return Repeated()
    error = _error(answer)
    text = attempt.said.traceback = answer.get("traceback")
    attempt.said.lines = deque(answer.get("lines", ()))
    if text is None or answer.get("planned", True):
        raise error
    # As Dramatiq does for a phase that raises in a thread what is not meant for the pipeline.
    worker.log.error(
        "an isolated phase failed",
        job=str(attempt.job_id),
        phase=attempt.spec.queue,
        fence=attempt.fence,
        traceback=text,
    )
    raise error from ChildTraceback(text)


def _snooze(answer: dict[str, Any]) -> Snooze:
    error = Snooze(answer["seconds"], answer["reason"], answer["error"], asked=answer["asked"])
    error.step = answer["step"]
    return error


def _error(answer: dict[str, Any]) -> PipelineError:
    said = answer["error"]
    match answer["kind"]:
        case "snooze":
            error: PipelineError = _snooze(answer)
        case "fail":
            error = Permanent(said)
        case "memory":
            return Crashed(said)
        case "lost":
            return StaleClaim(said)
        case "cancelled":
            return Cancelled(said)
        case _:
            error = Transient(said)
    # In the job's row it stands as it would if the phase had run in a thread.
    error.described = said
    return error
