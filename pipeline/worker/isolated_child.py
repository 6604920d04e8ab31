"""The child process of an isolated phase: one job, its own limits, its answer on standard output."""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import inspect
import os
import resource
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from pipeline.declare.errors import Cancelled, GiveUp, SnoozeFor, StaleClaim, classify
from pipeline.declare.job import Job, as_done
from pipeline.journey.attempt import Attempt

if TYPE_CHECKING:
    from pipeline.declare.registry import DeclaredPhase
    from pipeline.store.group_commit import Completed


def main() -> None:
    """Read the order, run the phase, write one answer. Whatever the phase prints goes to standard error."""
    _die_with_the_worker()
    order = orjson.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_watch_the_worker, daemon=True).start()
    answer_to = os.dup(1)
    os.dup2(2, 1)
    answer = _answer(order, lambda line: os.write(answer_to, line))
    with os.fdopen(answer_to, "wb") as out:
        out.write(_encode(answer) + b"\n")
    os._exit(0)


def _encode(answer: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps({"answer": answer}, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, ValueError) as error:
        return orjson.dumps({"answer": {"kind": "retry", "error": f"{type(error).__name__}: {error}"}})


def _answer(order: dict[str, Any], tell: Callable[[bytes], object]) -> dict[str, Any]:
    from pipeline.journey.attempt import job_of
    from pipeline.journey.settle import describe

    limit = 0
    try:
        actor = _declared(order)
        attempt = _claim(order, actor.spec)
        job = job_of(attempt, lambda: Path(order["temp_root"]))
        job.span = order["span"]
        limit = actor.spec.memory_limit or 0
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        tell(b'{"began":true}\n')
        return _run(order, attempt, actor.work, job, tell)
    except MemoryError:
        return {"kind": "memory", "error": f"memory limit of {limit} bytes exceeded"}
    except (Cancelled, StaleClaim) as error:
        return {"kind": "cancelled" if isinstance(error, Cancelled) else "lost", "error": str(error)}
    except (Exception, SystemExit) as error:
        return _error(error, describe(error))


def _run(
    order: dict[str, Any], attempt: Attempt, work: Callable[[Job], object], job: Job, tell: Callable[[bytes], object]
) -> dict[str, Any]:
    from pipeline.journey.attempt import encode_result
    from pipeline.journey.settle import TRIES
    from pipeline.journey.write import StillLocked, complete_with_write

    value = work(job)
    done = as_done(asyncio.run(value) if inspect.iscoroutine(value) else value)
    result = encode_result(attempt, done)
    if done.write is None:
        # Encoded as a thread would: what JSON makes of it is what later phases get, and it cannot fail again.
        return {"kind": "done", "result": orjson.Fragment(result) if result else None}
    complete = partial(complete_with_write, order["worker_no"], attempt, done.execute, result)
    try:
        completed = complete(tries=TRIES)
    except StillLocked:
        # The work is done, and an application holds the job: that time is not the phase's.
        tell(b'{"waiting":true}\n')
        completed = complete()
    return _completed(completed)


def _completed(completed: Completed) -> dict[str, Any]:
    from pipeline.store.group_commit import HandedOver, Repeated

    match completed:
        case HandedOver():
            return {"kind": "handed_over"}
        case Repeated():
            return {"kind": "repeated"}
        case _:
            return {"kind": "succeeded"}


def _declared(order: dict[str, Any]) -> DeclaredPhase:
    """The phase, declared by the modules that declared it in the worker, however that had come to import them."""
    sys.path[:] = order["path"]
    for module in order["modules"]:
        if module == "__main__":
            _run_main(**order["main"])
        else:
            importlib.import_module(module)
    from pipeline.declare.registry import find_phase

    try:
        return find_phase(order["queue"])
    except LookupError:
        import pipeline.actors  # noqa: F401  declares every phase that the settings name

        return find_phase(order["queue"])


def _run_main(name: str | None, file: str | None) -> None:
    """As multiprocessing does: under another name, so that what is only for the program itself does not run."""
    if name is not None:
        runpy.run_module(name, run_name="__mp_main__", alter_sys=True)
    elif file is not None:
        runpy.run_path(file, run_name="__mp_main__")


def _error(error: BaseException, said: str) -> dict[str, Any]:
    match classify(error, datetime.now(UTC)):
        case SnoozeFor(seconds, reason, asked):
            return {"kind": "snooze", "seconds": seconds, "reason": reason, "asked": asked, "error": said}
        case GiveUp():
            return {"kind": "fail", "error": said}
        case _:
            return {"kind": "retry", "error": said}


def _claim(order: dict[str, Any], spec: Any) -> Attempt:
    return Attempt(
        spec=spec,
        job_id=UUID(order["job_id"]),
        fence=order["fence"],
        attempts=order["attempts"],
        max_attempts=order["max_attempts"],
        crashes=order["crashes"],
        isolated=True,
        priority=order["priority"],
        body=order["body"],
        results=order["results"],
        trace_id=order["trace_id"],
        span_id=order["span_id"],
        delivery=None,  # type: ignore[arg-type]  # the message stays with the worker
    )


def _die_with_the_worker() -> None:
    # PR_SET_PDEATHSIG: even native code that never returns to Python ends when its worker does.
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)


def _watch_the_worker() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
