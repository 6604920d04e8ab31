"""The child process of an isolated phase: one job, its own limits, its answer on standard output."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from pipeline.flow.claim import Claim
from pipeline.flow.job import Job
from pipeline.rules.errors import Cancelled, GiveUp, Park, StaleClaim, classify
from pipeline.rules.outcome import as_done


def main() -> None:
    """Read the order, run the phase, write one answer. Whatever the phase prints goes to standard error."""
    _die_with_the_worker()
    order = orjson.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_watch_the_worker, daemon=True).start()
    answer_to = os.dup(1)
    os.dup2(2, 1)
    answer = _answer(order)
    with os.fdopen(answer_to, "wb") as out:
        out.write(orjson.dumps({"answer": answer}) + b"\n")
    os._exit(0)


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    import pipeline.actors  # noqa: F401  declares every phase
    from pipeline.flow.lanes import take_turn
    from pipeline.flow.process import keep_rows, read_rows, report_progress
    from pipeline.flow.settle import complete_with_write, describe, encode_result
    from pipeline.flow.workflow import find_phase

    actor = find_phase(order["queue"])
    claim = _claim(order, actor.spec)
    job = Job(
        id=claim.job_id, workflow=actor.spec.workflow, phase=actor.spec.name, body=claim.body, results=claim.results,
        attempt=claim.attempts + 1, fence=claim.fence, trace_id=claim.trace_id, span_id=claim.span_id,
        span=order["span"], temp_root=Path(order["temp_root"]), read_rows=read_rows,
        report=lambda done, total: report_progress(claim, done, total),
        keep_rows=lambda statement, values: keep_rows(claim, statement, values),
        take_turn=lambda lane, calls: take_turn(claim.job_id, lane, calls),
    )  # fmt: skip
    limit = actor.spec.memory_limit
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        done = as_done(actor.work(job))
        result = encode_result(claim, done)
        if done.write is None:
            return {"kind": "done", "result": done.result}
        row = complete_with_write(order["worker_no"], claim, done.write, result)
        return {"kind": "completed", "row": [row.verdict, row.queue, row.actor, row.send, row.max_attempts,
                                             row.sent_at and row.sent_at.isoformat()]}  # fmt: skip
    except MemoryError:
        return {"kind": "memory", "error": f"memory limit of {limit or 0} bytes exceeded"}
    except (Cancelled, StaleClaim) as error:
        return {"kind": "cancelled" if isinstance(error, Cancelled) else "lost", "error": str(error)}
    except Exception as error:
        return _error(error, describe(error))


def _error(error: Exception, said: str) -> dict[str, Any]:
    match classify(error, datetime.now(UTC)):
        case Park(seconds, reason, asked):
            return {"kind": "park", "seconds": seconds, "reason": reason, "asked": asked, "error": said}
        case GiveUp():
            return {"kind": "fail", "error": said}
        case _:
            return {"kind": "retry", "error": said}


def _claim(order: dict[str, Any], spec: Any) -> Claim:
    return Claim(
        spec=spec, job_id=UUID(order["job_id"]), fence=order["fence"], attempts=order["attempts"],
        max_attempts=order["max_attempts"], crashes=order["crashes"], isolated=True, priority=order["priority"],
        body=order["body"], results=order["results"], trace_id=order["trace_id"], span_id=order["span_id"],
        delivery=None,  # type: ignore[arg-type]  # the message stays with the worker
    )  # fmt: skip


def _die_with_the_worker() -> None:
    # PR_SET_PDEATHSIG: even native code that never returns to Python ends when its worker does.
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)


def _watch_the_worker() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
