"""A child process of isolated phases: one job at a time, with what earlier ones loaded, until its worker hangs up."""

from __future__ import annotations

import asyncio
import faulthandler
import inspect
import os
import select
import sys
import traceback
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from uuid import UUID

import orjson

from pipeline.declare.errors import Cancelled, GiveUp, PipelineError, SnoozeFor, StaleClaim, classify
from pipeline.declare.job import Done, as_done, perform
from pipeline.declare.waits.branches import next_of
from pipeline.journey.attempt import Attempt, encode_result, job_of
from pipeline.journey.settle import TRIES, describe
from pipeline.journey.steps import keep_alone
from pipeline.journey.write import StillLocked, complete_with_write, submit_children
from pipeline.observe import failpoints
from pipeline.observe.instruments import in_logs
from pipeline.observe.lines import Printed, called
from pipeline.observe.tracebacks import formatted
from pipeline.store import database
from pipeline.store.group_commit import Completed, Completion, HandedOver, Repeated
from pipeline.worker.isolation import wire
from pipeline.worker.isolation.declarations import Declarations, declared
from pipeline.worker.isolation.processes import at_most, memory
from pipeline.worker.isolation.tail import Tail
from pipeline.worker.loop_writes import LoopConnection

if TYPE_CHECKING:
    from socket import socket

    from sqlalchemy import Connection

    from pipeline.declare.job import Job
    from pipeline.declare.phase import PhaseSpec
    from pipeline.declare.registry import DeclaredPhase

Answer = dict[str, Any]
# More than this is much for a child to keep. Once it may be what the phase has loaded for its jobs, twice it is a leak.
GROWTH = 256 << 20
FAILED = ("fail", "retry", "memory")
# Seconds without a job after which a child gives up its connections to PostgreSQL.
REST = 2.0


class Child:
    """Works off the orders that come over ``channel``."""

    def __init__(self, channel: socket, told: Declarations) -> None:
        self._channel = channel
        self._told = told
        self._resident, self._steps = memory()[1], 0
        self._loop: asyncio.Runner | None = None
        self._phases: dict[str, DeclaredPhase] = {}
        self._waiting = select.poll()
        self._waiting.register(channel, select.POLLIN)

    def serve(self) -> None:
        """Until the worker closes the channel."""
        with self._channel.makefile("rb") as orders:
            while (text := self._next(orders)).endswith(b"\n"):
                answer = self._answer(orjson.loads(text))
                _flush()
                self._tell(wire.ANSWER, {**answer, "grown": self._has_grown()})

    def _next(self, orders: BinaryIO) -> bytes:
        """One that waits for long leaves its connections to others."""
        if not self._waiting.poll(1000 * REST):
            database.close_idle()
        return orders.readline()

    def _tell(self, kind: str, *content: object) -> None:
        self._channel.sendall(wire.line(kind, *content))

    def _answer(self, order: dict[str, Any]) -> Answer:
        limit: int | None = None
        job: Job | None = None
        tail: Tail | None = None
        try:
            phase = self._phase(order["queue"])
            limit = phase.spec.memory_limit
            attempt = _attempt(order, phase.spec)
            called(order["worker"])
            attempt.job = job = job_of(attempt, phase, lambda: Path(order["temp_root"]), keep_alone)
            job.span = order["span"]
            attempt.said.lines = tail = Tail(order["tail"])
            with in_logs(attempt), at_most(limit):
                self._tell(wire.BEGAN)
                answer = self._run(order, attempt, phase, job)
        except MemoryError as error:
            said = f"memory limit of {limit} bytes exceeded"
            answer = {"kind": "memory", "error": said, "traceback": formatted(error)}
        except (Cancelled, StaleClaim) as error:
            answer = {"kind": "cancelled" if isinstance(error, Cancelled) else "lost", "error": str(error)}
        except BaseException as error:  # as in a thread, sys.exit() is an error of the phase
            answer = _error(error)
        if tail is not None:
            tail.close()
            if answer["kind"] in FAILED:
                answer["lines"] = list(tail)
        return {**answer, "folder": job is not None and job.has_folder}

    def _phase(self, queue: str) -> DeclaredPhase:
        if queue not in self._phases:
            self._phases[queue] = declared(queue, self._told)
        return self._phases[queue]

    def _run(self, order: dict[str, Any], attempt: Attempt, phase: DeclaredPhase, job: Job) -> Answer:
        done = self._done(perform(phase, job))
        job.services.calls.check()
        if order["dies"]:
            failpoints.die()
        result, following = encode_result(phase, done), next_of(phase.spec, done)
        if done.write is None and done.children is None:
            # Encoded as a thread would: what JSON makes of it is what later phases get, and it cannot fail again.
            return {"kind": "done", "result": result, "following": following}
        completion = Completion(attempt, result, following=following)
        complete = partial(complete_with_write, order["worker_no"], completion, self._writer(attempt, done))
        try:
            completed = complete(tries=TRIES)
        except StillLocked:
            # The work is done, and an application holds the job: that time is not the phase's.
            self._tell(wire.WAITING)
            completed = complete()
        return {"kind": _kind(completed)}

    def _done(self, returned: object) -> Done:
        return as_done(self._await(returned) if inspect.iscoroutine(returned) else returned)

    def _writer(self, attempt: Attempt, done: Done) -> Callable[[Connection], object]:
        if done.children is not None:
            return partial(submit_children, attempt, done.children)
        return partial(self._write, done) if inspect.iscoroutinefunction(done.write) else done.execute

    def _write(self, done: Done, connection: Connection) -> None:
        async def ask(work: Callable[[Connection], Any]) -> Any:
            return work(connection)

        self._await(cast("Any", done.write)(LoopConnection(ask)))

    def _await(self, coroutine: Coroutine[Any, Any, object]) -> object:
        """On one loop for all jobs: what a phase keeps may be bound to it."""
        self._loop = self._loop or asyncio.Runner()
        return self._loop.run(coroutine)

    def _has_grown(self) -> bool:
        resident = memory()[1]
        if resident - self._resident > GROWTH:
            self._resident = resident
            self._steps += 1
        return self._steps > 1


def _kind(completed: Completed) -> str:
    match completed:
        case HandedOver():
            return "handed_over"
        case Repeated():
            return "repeated"
        case _:
            return "succeeded"


def _error(error: BaseException) -> Answer:
    told: Answer = {"error": describe(error), "planned": isinstance(error, PipelineError)}
    match classify(error, datetime.now(UTC)):
        case SnoozeFor(seconds, reason, asked, step):
            return {"kind": "snooze", "seconds": seconds, "reason": reason, "asked": asked, "step": step, **told}
        case GiveUp():
            return {"kind": "fail", "traceback": formatted(error), **told}
        case _:
            return {"kind": "retry", "traceback": formatted(error), **told}


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            # The phase closed it, or nobody reads it any more.
            pass


def _attempt(order: dict[str, Any], spec: PhaseSpec) -> Attempt:
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
        first=order["first"],
        rate_limit=order["rate_limit"],
        delivery=None,  # type: ignore[arg-type]  # the message stays with the worker
    )


def live(channel: socket, told: Declarations) -> None:
    """All of a forked child's life. It ends without what the fork server has registered to run at its own exit."""
    code = 1
    # What is printed is the job's, and where it was when a signal killed it is told the worker.
    sys.stdout, sys.stderr = cast("Any", Printed(sys.stdout)), cast("Any", Printed(sys.stderr))
    faulthandler.enable(channel.fileno(), all_threads=False)
    try:
        Child(channel, told).serve()
        code = 0
    except (BrokenPipeError, ConnectionResetError):
        pass
    except BaseException:  # it must never return into the fork server's loop
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)
