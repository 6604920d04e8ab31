"""Running a phase in a child process of its own, so that only its own death counts against it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson

from pipeline.declare.errors import Cancelled, Crashed, Permanent, Snooze, StaleClaim, Transient
from pipeline.declare.job import Done
from pipeline.declare.registry import find_phase, workflows
from pipeline.journey.attempt import Attempt
from pipeline.journey.checkpoint import Interrupted
from pipeline.store.group_commit import Completed, HandedOver, Repeated, Succeeded

if TYPE_CHECKING:
    from pipeline.worker.process import WorkerProcess

BEGAN, WAITING, ANSWER = b'{"began":', b'{"waiting":', b'{"answer":'
# Imports on a busy machine. They are no part of the phase's own time.
START_LIMIT = 120.0


def run_isolated(worker: WorkerProcess, attempt: Attempt) -> Done | Completed:
    """Run the claim's phase in a child. Its errors are raised here; its death is raised as Crashed, with the cause.

    A phase with writes is completed by the child itself, under the same fence; then its Completed comes back.
    """
    attempt.deadline = monotonic() + START_LIMIT
    began = threading.Event()
    with _start(worker, attempt) as child:
        _stop_with(attempt, lambda: _kill(child))
        answer = _listen(child, attempt, lambda: _begin(worker, attempt, began))
        _stop_with(attempt, None)
    if answer is not None:
        return _read(answer)
    if attempt.reason == "time_limit" and not began.is_set():
        raise Transient(f"the child process did not begin within {START_LIMIT:g} s and was killed")
    if attempt.reason == "time_limit":
        raise Crashed(f"time limit of {attempt.spec.time_limit:g} s exceeded; the child process was killed")
    if attempt.reason is not None:
        raise Interrupted
    raise Crashed(_cause_of_death(child.returncode))


def _stop_with(attempt: Attempt, stop: Callable[[], None] | None) -> None:
    """How an interrupt ends the child; one that came before is obeyed now."""
    with attempt._lock:
        attempt.stop = stop
        if attempt.reason is not None and stop is not None:
            stop()


def _begin(worker: WorkerProcess, attempt: Attempt, began: threading.Event) -> None:
    """From now on the phase's own time limit counts."""
    began.set()
    attempt.deadline = monotonic() + attempt.spec.time_limit
    worker.held.add(attempt)


def _start(worker: WorkerProcess, attempt: Attempt) -> subprocess.Popen[bytes]:
    order = {
        "queue": attempt.spec.queue,
        "job_id": str(attempt.job_id),
        "fence": attempt.fence,
        "attempts": attempt.attempts,
        "max_attempts": attempt.max_attempts,
        "crashes": attempt.crashes,
        "priority": attempt.priority,
        "body": attempt.body,
        "results": attempt.results,
        "trace_id": attempt.trace_id,
        "span_id": attempt.span_id,
        "span": attempt.job.span if attempt.job else None,
        "temp_root": str(worker.temp_root),
        "worker_no": worker.no,
        **_where(attempt.spec.queue),
    }
    child = subprocess.Popen(
        [sys.executable, "-m", "pipeline.worker.isolated_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdin is not None
    try:
        # The pipe stays open: its end tells the child that this process died.
        child.stdin.write(orjson.dumps(order) + b"\n")
        child.stdin.flush()
    except BrokenPipeError:
        pass
    return child


def _where(queue: str) -> dict[str, Any]:
    """Where the child finds the phase: what this process imported to declare it, and from where."""
    workflow = workflows()[find_phase(queue).spec.workflow]
    modules = dict.fromkeys([workflow.module, *(actor.work.__module__ for actor in workflow.phases)])
    script = sys.modules["__main__"]
    spec = getattr(script, "__spec__", None)
    return {
        "modules": list(modules),
        "path": sys.path,
        # A workflow of the program itself: its module's name (python -m) or its file.
        "main": {"name": spec.name if spec else None, "file": getattr(script, "__file__", None)},
    }


def _listen(child: subprocess.Popen[bytes], attempt: Attempt, began: Callable[[], None]) -> dict[str, Any] | None:
    """The child's answer, or None when it died without one."""
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith(BEGAN):
            began()
        elif line.startswith(WAITING):
            attempt.deadline = float("inf")
        elif line.startswith(ANSWER):
            answer: dict[str, Any] = orjson.loads(line)["answer"]
            return answer
    child.wait()
    return None


def _kill(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _cause_of_death(code: int) -> str:
    if code < 0:
        return f"the child process was killed by {signal.Signals(-code).name}"
    return f"the child process ended with exit code {code} and no answer"


def _read(answer: dict[str, Any]) -> Done | Completed:
    said = str(answer.get("error", ""))
    match answer["kind"]:
        case "done":
            return Done(result=answer["result"])
        case "succeeded":
            return Succeeded()
        case "handed_over":
            return HandedOver()
        case "repeated":
            return Repeated()
        case "snooze":
            raise Snooze(answer["seconds"], answer["reason"], said, asked=answer["asked"])
        case "fail":
            raise Permanent(said)
        case "memory":
            raise Crashed(said)
        case "lost":
            raise StaleClaim(said)
        case "cancelled":
            raise Cancelled(said)
        case _:
            raise Transient(said)
