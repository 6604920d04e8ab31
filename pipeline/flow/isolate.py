"""Running a phase in a child process of its own, so that only its own death counts against it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from pipeline.flow.claim import Claim, Interrupted
from pipeline.flow.group_statement import Completed
from pipeline.rules.errors import Cancelled, Crashed, Permanent, StaleClaim, Transient, Wait
from pipeline.rules.outcome import Done

if TYPE_CHECKING:
    from pipeline.flow.process import WorkerProcess

ANSWER = b'{"answer":'


def run_isolated(worker: WorkerProcess, claim: Claim) -> Done | Completed:
    """Run the claim's phase in a child. Its errors are raised here; its death is raised as Crashed, with the cause.

    A phase with writes is completed by the child itself, under the same fence; then its Completed comes back.
    """
    with _start(worker, claim) as child:
        claim.stop = lambda: _kill(child)
        answer = _listen(child)
    if answer is not None:
        return _read(answer)
    if claim.reason == "time_limit":
        raise Crashed(f"time limit of {claim.spec.time_limit:g} s exceeded; the child process was killed")
    if claim.reason is not None:
        raise Interrupted
    raise Crashed(_cause_of_death(child.returncode))


def _start(worker: WorkerProcess, claim: Claim) -> subprocess.Popen[bytes]:
    order = {
        "queue": claim.spec.queue, "job_id": str(claim.job_id), "fence": claim.fence, "attempts": claim.attempts,
        "max_attempts": claim.max_attempts, "crashes": claim.crashes, "priority": claim.priority, "body": claim.body,
        "results": claim.results, "trace_id": claim.trace_id, "span_id": claim.span_id,
        "span": claim.job.span if claim.job else None,
        "temp_root": str(worker.temp_root), "worker_no": worker.no,
    }  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-m", "pipeline.flow.isolated_child"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert child.stdin is not None
    try:
        # The pipe stays open: its end tells the child that this process died.
        child.stdin.write(orjson.dumps(order) + b"\n")
        child.stdin.flush()
    except BrokenPipeError:
        pass
    return child


def _listen(child: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """The child's answer, or None when it died without one."""
    assert child.stdout is not None
    answer = None
    for line in child.stdout:
        if line.startswith(ANSWER):
            answer = orjson.loads(line)["answer"]
    child.wait()
    return answer


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
        case "completed":
            verdict, queue, actor, send, max_attempts, sent_at = answer["row"]
            return Completed(verdict, queue, actor, send, max_attempts, sent_at and datetime.fromisoformat(sent_at))
        case "park":
            raise Wait(answer["seconds"], answer["reason"], said, asked=answer["asked"])
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
