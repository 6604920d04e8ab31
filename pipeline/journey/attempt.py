"""One attempt at one phase, from the message's arrival to the commit: claim, run, settle, and on to the next phase."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from dramatiq.middleware import raise_thread_exception

from pipeline.broker.inbound import Inbound
from pipeline.declare.codec import DoesNotFit
from pipeline.declare.errors import Misuse, Permanent
from pipeline.declare.job import AsJson, Done, Job, Write, as_done, decode, perform
from pipeline.declare.lossless import without_nul
from pipeline.declare.phase import BODY_LIMIT, PhaseSpec
from pipeline.declare.registry import BadBody, DeclaredPhase
from pipeline.declare.services import Guard, Services
from pipeline.declare.waits.branches import next_of
from pipeline.journey import checkpoint, steps, unclaimed
from pipeline.journey.checkpoint import Interrupted
from pipeline.journey.limits.entrance import entered
from pipeline.journey.message import InvalidEnvelope, compose, read_ref
from pipeline.journey.rate_limits import take_permit
from pipeline.observe import failpoints, lines, logs
from pipeline.observe.instruments import count, in_logs, observe_duration, phase_span
from pipeline.store.group_commit import (
    Ask,
    ClaimRow,
    Completed,
    Completion,
    Continued,
    Lost,
    Signal,
    ThreadSignal,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

    import psycopg

    from pipeline.broker.inbound import Delivery
    from pipeline.declare.waits.limits import Breaker
    from pipeline.journey.message import MessageRef
    from pipeline.store.gateway.settlement import TakeOver
    from pipeline.store.group_commit import ClaimVerdict
    from pipeline.worker.process import WorkerProcess

Answer = TypeVar("Answer")

log = logs.get("pipeline.worker")

# How often a claim is looked at anew, before its message waits on its own.
LOOKS = 20
# A write that begins near the end of the time limit still gets this long.
WRITE_TIME = 5.0
CANCEL_TIMEOUT = 2.0
STEP = 0.1
# RabbitMQ wants a message acknowledged within half an hour, and counts from the job's first phase on.
CONSUMER_TIMEOUT = 1800.0
LONGEST_CARRIED = 0.8 * CONSUMER_TIMEOUT


class Place:
    """Where an attempt runs, and how it waits there. This is one of Dramatiq's threads, which blocks; the event loop
    has another, and continues with other jobs meanwhile.

    An attempt is one coroutine in both. In a thread nothing that it awaits ever yields.
    """

    # Whether it can wait for a child process.
    isolates = True

    def signal(self) -> Signal:
        """A signal that can be waited for here."""
        return ThreadSignal()

    async def wait(self, signal: Signal) -> None:
        """Until it is set."""
        cast(ThreadSignal, signal).wait()

    async def call(self, work: Callable[..., Answer], *args: Any) -> Answer:
        """Call what may block: PostgreSQL, or a pause."""
        return work(*args)

    async def look(self, look: Future[Answer]) -> Answer:
        """What somebody else is finding out."""
        return look.result()

    async def pause(self, attempt: Attempt, seconds: float) -> None:
        """Do nothing for so long, unless the attempt is told to stop."""
        attempt.pause(seconds)

    def stopper(self) -> Callable[[], None]:
        """How to stop the work that begins here now, from any thread."""
        return partial(raise_thread_exception, threading.get_ident(), Interrupted)

    def stopped(self, error: BaseException | None) -> None:
        """The work ended after it was told to stop: nothing of that may reach what runs here next."""
        if isinstance(error, Interrupted):
            return
        # The exception may still be on its way to this thread.
        try:
            for _ in range(1000):
                pass
        except Interrupted:
            pass

    def runner(self) -> object:
        """What is blocked if the work does not end."""
        return threading.current_thread()

    def services(self, services: AttemptServices) -> Services:
        """What a job reaches outside of its function, as the function waits for it."""
        return services

    async def returned(self, job: Job, value: Any) -> object:
        """What the phase returned, in the end."""
        return value

    def writer(self, attempt: Attempt, done: Done) -> Write:
        """What writes the phase's rows."""
        if inspect.iscoroutinefunction(done.write):
            raise Misuse("Done(write=…) was given an async function by a phase that is not async: use def for both")
        return done.execute


THREAD = Place()


class Elsewhere(Exception):
    """The attempt needs a place of another kind: its job crashed before, and runs isolated now."""


def in_thread(journey: Coroutine[Any, Any, None]) -> None:
    """Run an attempt in this thread, to its end."""
    try:
        journey.send(None)
    except StopIteration:
        return
    raise RuntimeError("an attempt in a thread waits for nothing but what blocks")


async def execute(
    worker: WorkerProcess, phase: DeclaredPhase, message: tuple[object, ...], delivery: Delivery, place: Place
) -> None:
    """Claim the message's job, do the work, settle. Errors go to the Retries middleware, which settles them."""
    # From here on the message is acknowledged only for a reason: a settled job, or nothing to do.
    delivery.deferred = True
    # A job that continues in this worker comes with its attempt.
    attempt = delivery.attempt or await receive(worker, phase.spec, message, delivery, place)
    if attempt is None:
        return
    attempt.place = place
    if attempt.isolated and not place.isolates:
        worker.held.add(attempt)
        raise Elsewhere
    # The heartbeat goes on until the settlement commits, however long PostgreSQL lets it wait. After an exception that
    # is the Retries middleware's business.
    done = await run(worker, attempt, phase)
    if failpoints.armed:
        failpoints.reach("phase.ended", attempt.spec.queue)
    await settle(worker, attempt, phase, done)


async def receive(
    worker: WorkerProcess, spec: PhaseSpec, message: tuple[object, ...], delivery: Delivery, place: Place
) -> Attempt | None:
    """Claim the message's job, or find out that there is nothing to do."""
    if not worker.inbound.begin(delivery):
        return None
    if failpoints.armed:
        failpoints.reach("message.received")
    try:
        if spec.queue != delivery.queue:
            raise InvalidEnvelope(f"invalid envelope: the actor of {spec.queue} was named in queue {delivery.queue}")
        ref = read_ref(spec, message)
    except InvalidEnvelope as error:
        count("refused.invalid_envelope")
        worker.log.error("message refused", queue=spec.queue, reason=str(error))
        delivery.fail()
        delivery.deferred = False
        return None
    attempt = delivery.attempt = await claim(worker, spec, ref, delivery, place)
    return attempt


async def run(worker: WorkerProcess, attempt: Attempt, phase: DeclaredPhase) -> Done | Completed:
    """Do the work: here, or in a child process of its own."""
    job = worker.job(attempt, phase)
    attempt.job = job
    worker.held.add(attempt)
    started = monotonic()
    try:
        span = phase_span(attempt.spec.queue, job.traceparent, job=str(job.id), fence=job.fence)
        with attempt, in_logs(attempt), span as job.span:
            if attempt.spec.rate_limit is None:
                return await work(worker, attempt, phase, job)
            async with entered(attempt):
                return await work(worker, attempt, phase, job)
    finally:
        if not attempt.abandoned:
            observe_duration(attempt.spec.queue, monotonic() - started)
        if job.has_folder:
            await attempt.place.call(job.clean_up)


async def work(worker: WorkerProcess, attempt: Attempt, phase: DeclaredPhase, job: Job) -> Done | Completed:
    """Where the phase runs."""
    if attempt.isolated:
        return worker.run_isolated(attempt)
    return as_done(await attempt.place.returned(job, perform(phase, job)))


async def claim(
    worker: WorkerProcess, spec: PhaseSpec, ref: MessageRef, delivery: Delivery, place: Place
) -> Attempt | None:
    """A claim, or None when there is nothing to do now: the message has done its part, for a reason that is counted,
    or it is set aside because nothing can be said yet."""
    for _ in range(LOOKS):
        ask = Ask(ref.job_id, spec.queue, ref.send, ref.sent_at, delivery, place.signal())
        worker.committer.claim(ask)
        await place.wait(ask.signal)
        row = ask.row()
        verdict: ClaimVerdict | TakeOver = row.verdict
        if verdict == "claimed":
            return _attempt(spec, ref.job_id, row, delivery)
        if verdict == "running" and ref.send is not None:
            holder = row.holder or ""
            gone = await place.look(worker.holders.look(ref.job_id, holder))
            met = partial(unclaimed.meet, worker, ref, delivery, holder=holder, fence=row.fence, gone=gone)
            verdict = await place.call(met)
        if verdict == "locked" and await place.call(unclaimed.set_aside, worker, delivery):
            return None
        if verdict not in ("locked", "claimed", "changed"):
            await place.call(unclaimed.refuse, worker, ref, delivery, verdict)
            return None
    worker.inbound.set_aside(delivery, unclaimed.LONGEST_ASIDE)
    return None


def _attempt(spec: PhaseSpec, job_id: UUID, row: ClaimRow, delivery: Delivery) -> Attempt:
    return Attempt(
        spec=spec,
        job_id=job_id,
        fence=row.fence,
        attempts=row.attempts,
        max_attempts=row.max_attempts,
        crashes=row.crashes,
        isolated=bool(row.isolated),
        priority=row.priority,
        body=row.body,
        results=row.result or "{}",
        trace_id=row.trace_id,
        span_id=row.span_id,
        delivery=delivery,
        first=row.fence == 1,
        rate_limit=row.rate_limit,
    )


async def settle(worker: WorkerProcess, attempt: Attempt, phase: DeclaredPhase, done: Done | Completed) -> None:
    """Success: with writes in one transaction with them, without any in the process's next batch."""
    if not isinstance(done, Done):
        finished(worker, attempt, done)
        return
    attempt.result = result = encode_result(phase, done)
    following = None if done.next is None and done.after is None else next_of(phase.spec, done)
    continuing = worker.advance.way(attempt) if following is None else None
    if done.write is None and done.children is None:
        if attempt.finish():
            signal = None if continuing is None else attempt.place.signal()
            worker.committer.complete(Completion(attempt, result, continuing, following, signal))
            if signal is not None:
                await attempt.place.wait(signal)
        return
    from pipeline.journey.write import settle_with_write  # which needs this module first

    await attempt.place.call(settle_with_write, worker, Completion(attempt, result, continuing, following), done)


def finished(worker: WorkerProcess, attempt: Attempt, completed: Completed) -> None:
    """If its thread was given up in the meantime, whoever did so learns that it had committed (see settle_error)."""
    if attempt.finish():
        worker.advance.committed([(attempt, completed)])


def encode_result(phase: DeclaredPhase, done: Done) -> str | None:
    """The phase's result as JSON, refused when it is too big to travel with the job."""
    if done.result is None or isinstance(done.result, AsJson):
        return None if done.result is None else done.result.text
    name = phase.spec.name
    try:
        if b"\\u0000" in (encoded := phase.result.encode(done.result)):
            without_nul(encoded)
    except DoesNotFit as error:
        raise Misuse(f"phase {name} returned a result that is not what its annotation says: {error}") from None
    except ValueError as error:
        raise Misuse(f"phase {name} returned a result that cannot be stored as JSON: {error}") from None
    if len(encoded) > BODY_LIMIT:
        raise Permanent(
            f"phase {name} returned {len(encoded)} bytes, the limit is {BODY_LIMIT}: "
            "store the data in a table or a file and return a reference"
        )
    return encoded.decode()


@dataclass(eq=False)
class Attempt:
    """One attempt's hold on a job, from claim to settlement.

    ``body`` and ``results`` are JSON: each attempt gets values of its own, which it may change.
    It is settled once: by the thread that runs it (``finish``), or without it if that thread is stuck (``give_up``).
    """

    spec: PhaseSpec
    job_id: UUID
    fence: int
    attempts: int
    max_attempts: int
    crashes: int
    isolated: bool
    priority: int
    body: str
    results: str
    trace_id: str
    span_id: str
    delivery: Delivery
    # Nobody has tried this phase of the job before.
    first: bool = False
    # What holds the job at the gate, by name; empty if its body does not fill the phase's.
    rate_limit: str | None = None
    result: str | None = None
    said: lines.Said = field(default_factory=lines.Said)
    reason: str | None = None
    job: Job | None = None
    # How an interrupt reaches the work; None before it begins and after it ended.
    stop: Callable[[], None] | None = None
    place: Place = THREAD
    runner: object = None
    using: psycopg.Connection[Any] | None = None
    deadline: float = field(init=False)
    _limit: float = field(init=False)
    interrupted_at: float = float("inf")
    finished: bool = False
    abandoned: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _cancelling: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.deadline = self._limit = monotonic() + self.spec.time_limit

    def next(self, spec: PhaseSpec, delivery: Delivery, continued: Continued) -> Attempt:
        """The hold on the same job in its next phase, which begins with what this one returned."""
        return Attempt(
            spec=spec,
            job_id=self.job_id,
            fence=continued.fence,
            attempts=0,
            max_attempts=continued.max_attempts,
            crashes=0,
            isolated=continued.isolated,
            priority=self.priority,
            body=self.body,
            results=_with(self.results, self.spec.name, self.result),
            trace_id=self.trace_id,
            span_id=self.span_id,
            delivery=delivery,
            first=True,
            rate_limit=continued.rate_limit,
        )

    def __enter__(self) -> Attempt:
        self.runner = self.place.runner()
        with self._lock:
            # Told to stop before it began: while it waited for a place.
            if self.reason is not None:
                raise Interrupted
            # A child process brings its own way to be stopped.
            self.stop = None if self.isolated else self.place.stopper()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with self._lock:
            self.stop = None
        if self.reason is not None and not self.isolated:
            self.place.stopped(error)

    def interrupt(self, reason: str) -> None:
        """Tell it to stop: 'cancelled', 'lost', 'time_limit', 'shutdown' or 'blocked'. The first reason stands."""
        with self._lock:
            if self.reason is not None or self.finished:
                return
            self.reason, self.interrupted_at = reason, monotonic()
            if self.job is not None and reason in ("cancelled", "lost"):
                self.job.lost = reason
            if self.stop is not None:
                self.stop()

    def finish(self) -> bool:
        """The attempt is over, and its thread settles it. False if that was done without it: nothing of it counts."""
        with self._lock:
            self.finished = not self.abandoned
            return self.finished

    def give_up(self) -> bool:
        """Settle it without its place, which does not come back. False if it did after all."""
        with self._lock:
            if self.finished or self.abandoned:
                return False
            self.abandoned = self.delivery.abandoned = True
            return True

    @contextmanager
    def writing(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """What is written over ``connection`` meanwhile is cancelled on the server if the attempt must stop."""
        self.using = connection
        try:
            yield
        finally:
            # The connection goes back to the pool: a cancel that is on its way must not hit its next user.
            with self._cancelling:
                self.using = None

    def cancel_write(self) -> None:
        """End on the server what is being written, so that its thread comes back from it."""
        with self._cancelling:
            if self.using is not None:
                self.using.cancel_safe(timeout=CANCEL_TIMEOUT)

    def end_session(self, terminate: Callable[[int], None]) -> None:
        """``terminate`` the session over which a write is under way, if there is one, while it is this attempt's."""
        with self._cancelling:
            if self.using is not None and not self.using.closed:
                terminate(self.using.info.backend_pid)

    def begin_write(self) -> None:
        """The work is done; its write is bounded by what is left of the time limit, or by a little more."""
        self.runner, self.deadline = self.place.runner(), max(self._limit, monotonic() + WRITE_TIME)

    def detach(self) -> None:
        """The work is done and its place is free; the settlement waits elsewhere, and its time is not limited."""
        self.runner, self.deadline = None, float("inf")

    def pause(self, seconds: float) -> None:
        """Sleep, unless the attempt is told to stop: then raise Interrupted."""
        until = monotonic() + seconds
        while self.reason is None and (left := until - monotonic()) > 0:
            sleep(min(left, STEP))
        if self.reason is not None:
            raise Interrupted


def _with(results: str, phase: str, result: str | None) -> str:
    """The JSON object with one more member; a later one of the same name counts."""
    if result is None:
        return results
    separator = "" if results == "{}" else ","
    return f'{results[:-1]}{separator}"{phase}":{result}}}'


class Held:
    """The attempts of this process: the heartbeat beats for them, and the watch ends those that are out of time."""

    def __init__(self) -> None:
        self._attempts: dict[UUID, Attempt] = {}
        self._lock = threading.Lock()
        self.next_look = float("inf")
        self.wake: Callable[[], None] = lambda: None

    def __contains__(self, attempt: Attempt) -> bool:
        return self._attempts.get(attempt.job_id) is attempt

    def add(self, attempt: Attempt) -> None:
        """Nobody is woken unless its time is over before all others'."""
        with self._lock:
            self._attempts[attempt.job_id] = attempt
        if attempt.deadline < self.next_look:
            self.wake()

    def remove(self, attempt: Attempt) -> None:
        """Its settlement is committed, or nothing of it counts."""
        with self._lock:
            if self._attempts.get(attempt.job_id) is attempt:
                del self._attempts[attempt.job_id]

    def all(self) -> list[Attempt]:
        with self._lock:
            return list(self._attempts.values())


class Advance:
    """A message carries its job as far as it can go: whoever ends a phase claims the next one in the same statement.

    If the worker dies, the message comes back, and its job is sent to the queue where it belongs. ``following``: the
    phase after each queue, of those that this process serves. ``lost`` hears of attempts whose job is no longer theirs.
    """

    def __init__(
        self,
        inbound: Inbound,
        held: Held,
        following: Mapping[str, PhaseSpec],
        *,
        lost: Callable[[Attempt], None],
    ) -> None:
        self._inbound = inbound
        self._held = held
        self._lost = lost
        self._following = following

    def way(self, attempt: Attempt) -> str | None:
        """The queue that the job may continue in here. None if the place or the message is needed for something else.

        Order between phases is the workflow's choice: a job that began goes first, unless one of a higher priority
        waits in this process (finish-first); or it goes only if nothing else waits (start-first).
        """
        following = self._following.get(attempt.spec.queue)
        if following is None or not attempt.delivery.live or not self._inbound.consumes(following.queue):
            return None
        # A place of one kind is none of another; a job that runs isolated because it crashed has one of a third.
        if following.kind != attempt.spec.kind or attempt.isolated != attempt.spec.isolated:
            return None
        if self._inbound.has_waiting(following.queue, None if following.start_first else attempt.priority):
            return None
        carried = monotonic() - attempt.delivery.arrived
        return following.queue if carried + following.time_limit <= LONGEST_CARRIED else None

    def committed(self, batch: Sequence[tuple[Attempt, Completed]]) -> None:
        """Acknowledge what has done its part, and take up the rest."""
        for attempt, completed in batch:
            if isinstance(completed, Lost):
                count("discarded")
                log.warning("result discarded: the claim was lost", job=str(attempt.job_id), fence=attempt.fence)
                self._lost(attempt)
            else:
                count(f"{attempt.spec.queue}.succeeded")
        self._inbound.ack(attempt.delivery for attempt, completed in batch if not isinstance(completed, Continued))
        for attempt, completed in batch:
            if isinstance(completed, Continued):
                self._continue(attempt, completed)
            # Committed: no heartbeat any more. Attempt and message name each other, and would wait for the collector.
            self._held.remove(attempt)
            attempt.delivery.attempt = attempt.job = None

    def _continue(self, ended: Attempt, continued: Continued) -> None:
        """The job is ours again, in its next phase: it is taken up as if a message had brought it."""
        spec = self._following[ended.spec.queue]
        message = compose(
            job_id=ended.job_id,
            queue=spec.queue,
            actor=spec.actor,
            send=continued.send,
            attempt=1,
            max_attempts=continued.max_attempts,
            sent_at=continued.at,
            priority=ended.priority,
            body=ended.body,
            trace_id=ended.trace_id,
            span_id=ended.span_id,
        )
        delivery = ended.delivery.continuing(message)
        delivery.attempt = ended.next(spec, delivery, continued)
        count("continued")
        self._held.add(delivery.attempt)
        self._inbound.begin_here(delivery)


class AttemptServices(checkpoint.Linking):
    """What a job reaches while this attempt holds it."""

    def __init__(self, attempt: Attempt, folder: Callable[[], Path], keeper: steps.Keeper) -> None:
        self._attempt = attempt
        self._folder = folder
        self._keeper = keeper
        self.asynchronous = attempt.spec.asynchronous

    @cached_property
    def temp_root(self) -> Path:
        return self._folder()

    def read(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        return checkpoint.read_rows(statement, parameters)

    def keep(self, statement: str, parameters: Mapping[str, Any]) -> bool:
        return checkpoint.keep_rows(self._attempt, statement, parameters)

    def ends(self, batch: UUID, after: UUID | None, skip: int, most: int) -> Sequence[Mapping[str, Any]]:
        return checkpoint.read_ends(batch, after, skip, most)

    async def kept_steps(self) -> Mapping[str, str]:
        return await steps.kept(self._attempt)

    async def keep_step(self, name: str, value: str) -> bool:
        return await steps.keep(self._keeper, self._attempt, name, value)

    def report(self, done: int, total: int) -> bool:
        return checkpoint.report_progress(self._attempt, done, total)

    def take_permit(self, rate_limit: str, calls: int) -> None:
        if (pause := self.permit_in(rate_limit, calls)) > 0:
            sleep(pause)

    def guard(self, breaker: Breaker) -> Guard:
        from pipeline.journey.limits.breaker import CallGuard  # which loads pybreaker

        return CallGuard(breaker, breaker.name, self._attempt)

    def permit_in(self, rate_limit: str, calls: int) -> float:
        """The seconds until the permit is valid."""
        return take_permit(self._attempt.job_id, rate_limit, calls)


def job_of(attempt: Attempt, phase: DeclaredPhase, folder: Callable[[], Path], keeper: steps.Keeper) -> Job:
    """The job as the phase function sees it. Permanent if its body is not of the workflow's type."""
    try:
        body = phase.body.decode(attempt.body)
    except DoesNotFit as error:
        raise Permanent(str(BadBody(attempt.spec.workflow, error))) from None
    return Job(
        id=attempt.job_id,
        workflow=attempt.spec.workflow,
        phase=attempt.spec.name,
        body=body,
        results=decode(attempt.results),
        attempt=attempt.attempts + 1,
        fence=attempt.fence,
        trace_id=attempt.trace_id,
        span_id=attempt.span_id,
        services=attempt.place.services(AttemptServices(attempt, folder, keeper)),
    )
