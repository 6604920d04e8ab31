"""One worker process: what its threads share, and the middleware that makes one of Dramatiq's workers ours."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import orjson
from dramatiq import Broker
from dramatiq.broker import MessageProxy
from dramatiq.middleware import Middleware, Retries
from dramatiq.worker import WorkerThread
from periodiq import PeriodiqMiddleware

from pipeline import settings
from pipeline.broker.broker import EngineActor, PipelineBroker
from pipeline.broker.inbound import Delivery, Inbound, Intake, consume_in_one_thread
from pipeline.broker.outbound import Link, Outbound
from pipeline.broker.topology import SWEEPS, QueueType
from pipeline.declare.errors import PipelineError
from pipeline.declare.job import Done, Job
from pipeline.declare.phase import PhaseSpec
from pipeline.declare.registry import DeclaredPhase, workflows
from pipeline.journey import left_behind
from pipeline.journey.attempt import THREAD, Advance, Attempt, Held, execute, in_thread, job_of
from pipeline.journey.checkpoint import Interrupted
from pipeline.journey.give_back import GiveBack
from pipeline.journey.settle import DEAD_LETTERED, settle_error, settle_for_good
from pipeline.journey.steps import keep_in_group
from pipeline.journey.unclaimed import Holders
from pipeline.maintenance import schedule, sweeps
from pipeline.maintenance.leading import Leading
from pipeline.maintenance.temp_folders import TempFolders, database_id
from pipeline.observe import failpoints, lines, logs
from pipeline.observe.instruments import snapshot
from pipeline.settings import Settings
from pipeline.store.engine import connect
from pipeline.store.gateway.liveness import Report
from pipeline.store.group_commit import Committer, Completed, Completion
from pipeline.store.shared_writes import SharedWrites
from pipeline.worker import startup
from pipeline.worker.code import code_version, resident_memory
from pipeline.worker.deadlines import GRACE, Watch
from pipeline.worker.essential import essential_thread
from pipeline.worker.event_loop import EventLoop
from pipeline.worker.isolation.children import Children
from pipeline.worker.isolation.run import run_isolated
from pipeline.worker.liveness import Liveness, new_worker_id
from pipeline.worker.prepare import prepare
from pipeline.worker.stuck import EXIT_CODE, StuckThreads

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dramatiq import Worker

PATIENCE = 0.5


class Saturation:
    """Counts busy places of one kind. If all stay busy for half a second, unstarted messages go back to their queues.

    Whether to take messages is decided in one thread, the AMQP one, from what is true at that moment: whoever notices a
    change only asks for a decision. ``hoards``: there are always unstarted messages; otherwise it is looked for them.
    """

    def __init__(self, link: Link, inbound: Inbound, intake: Intake, places: int, *, hoards: bool = True) -> None:
        self._link = link
        self._inbound = inbound
        self._intake = intake
        self._places = places
        self._hoards = hoards
        self._busy = 0
        self._ended = 0
        self._paused = False
        self._watching = False
        self._changed = threading.Condition()

    def started(self) -> None:
        with self._changed:
            self._busy += 1
            if self._busy < self._places or self._watching:
                return
            self._watching = True
            seen = self._ended
        self._link.call(lambda: self._link.later(PATIENCE, lambda: self._look(seen)))

    def ended(self) -> None:
        with self._changed:
            self._busy -= 1
            self._ended += 1
            resume, self._paused = self._paused, False
            self._changed.notify_all()
        if resume:
            self._inbound.pause_if(self._intake, lambda: self._paused)

    def wait_until_idle(self, timeout: float) -> bool:
        """Whether no place is busy, at the latest after so many seconds."""
        deadline = monotonic() + timeout
        with self._changed:
            return self._changed.wait_for(lambda: self._busy <= 0, max(0.0, deadline - monotonic()))

    def _look(self, seen: int) -> None:
        with self._changed:
            self._watching = self._busy >= self._places
            now = self._ended
            stuck = self._watching and now == seen and (self._hoards or bool(self._intake.unstarted))
            if stuck:
                self._paused, self._watching = True, False
        if stuck:
            self._inbound.pause_if(self._intake, lambda: self._paused)
        elif self._watching:
            self._link.later(PATIENCE, lambda: self._look(now))


class WorkerProcess:
    """Everything a worker thread needs. Made after the fork, at worker boot."""

    def __init__(
        self,
        settings: Settings,
        inbound: Inbound,
        outbound: Outbound,
        *,
        threads: int,
        queues: list[str],
        following: Mapping[str, PhaseSpec],
    ) -> None:
        self.settings = settings
        self.inbound = inbound
        self.outbound = outbound
        self.threads = threads
        self.id = new_worker_id(settings.worker_id)
        self.log = logs.get("pipeline.worker").bind(worker=self.id)
        lines.called(self.id)
        self.stuck: StuckThreads | None = None
        self.loop: EventLoop | None = None
        # Hands a delivery to the threads.
        self.run_in_thread: Callable[[Delivery], None] = lambda _: None
        self.held = Held()
        self.holders = Holders(self)
        self.liveness = Liveness(
            settings.session_dsn,
            self.id,
            held=self.held,
            threads=threads,
            queues=queues,
            beat=settings.heartbeat_seconds,
            report=self._report,
            version=settings.code_version or code_version(),
            drain=inbound.drain,
        )
        self.watch = Watch(self.held, self._abandon)
        self.liveness.start()
        self.no = self.liveness.worker_no
        self.advance = Advance(inbound, self.held, following, lost=self.liveness.lost)
        self.committer = Committer(
            settings.dsn,
            self.id,
            self.no,
            self._completed,
            self._refused,
            thread=essential_thread,
            pooled=settings.pooled,
        )
        self.committer.start()
        self.writes = SharedWrites(settings.dsn, self.no, thread=essential_thread, pooled=settings.pooled)
        self.children = Children(threads, settings.log_format, settings.log_level)
        self.children.start(ahead=_any_isolated(queues))
        self.watch.start()
        with connect(settings.session_dsn, "identity") as connection:
            self._temp_folders = TempFolders(settings.temp_folder, database_id(connection))
        # Of workers on this host that were killed: its leader of maintenance may be on another.
        self._temp_folders.sweep()
        self._temp_folders.open(self.id)
        self._local = threading.local()

    @property
    def temp_root(self) -> Path:
        """Where this worker's jobs have their folders."""
        return self._temp_folders.root(self.id)

    def delivery(self) -> Delivery:
        """The message that this thread works on: Dramatiq gives an actor only its arguments."""
        delivery: Delivery = self._local.delivery
        return delivery

    def take(self, delivery: Delivery) -> None:
        self._local.delivery = delivery

    def release_all(self) -> None:
        """Shutdown: attempts that still run are told to stop; their jobs are released at no cost."""
        for attempt in self.held.all():
            attempt.interrupt("shutdown")
        self.held.wake()

    def runs(self, job_id: UUID) -> bool:
        """Whether this process works on the job."""
        return any(attempt.job_id == job_id for attempt in self.held.all())

    def job(self, attempt: Attempt, phase: DeclaredPhase) -> Job:
        """The job as the phase function sees it."""
        job = job_of(attempt, phase, lambda: self.temp_root, partial(keep_in_group, self.committer))
        # A child process makes the folder, and this process removes it.
        job.has_folder = attempt.isolated
        return job

    def run_isolated(self, attempt: Attempt) -> Done | Completed:
        """Run the claim's phase in a child process."""
        return run_isolated(self, attempt)

    def stop(self) -> None:
        """Commit what is left, then sign off."""
        self.committer.flush(5)
        self.committer.stop()
        self.writes.stop()
        left_behind.release(self.held)
        self.watch.stop()
        if self.loop is not None:
            self.loop.stop()
        self.children.stop()
        drained = self.outbound.drain(2)
        self.liveness.stop(clean=drained and not self.held.all())
        self._temp_folders.close()

    def _report(self) -> Report:
        """What a heartbeat tells about this process."""
        return Report(
            confirmed_at=self.outbound.oldest_unconfirmed(),
            counters=orjson.dumps(snapshot()).decode(),
            not_consuming=self.inbound.not_consuming(),
            unstarted=orjson.dumps(self.inbound.unstarted()).decode(),
            stuck=self.stuck.now if self.stuck else 0,
            memory=resident_memory(),
            stuck_jobs=self.stuck.jobs() if self.stuck else (),
        )

    def _abandon(self, attempt: Attempt) -> None:
        if self.stuck is not None:
            self.stuck.abandon(attempt)

    def _completed(self, batch: list[tuple[Completion, Completed]]) -> None:
        self.advance.committed([(completion.attempt, completed) for completion, completed in batch])

    def _refused(self, completion: Completion, error: Exception) -> None:
        """PostgreSQL refused this completion by itself: the attempt failed, its neighbours did not."""
        threading.Thread(target=settle_for_good, args=(self, completion.attempt, error), daemon=True).start()


_current: WorkerProcess | None = None


def current() -> WorkerProcess:
    """The worker this code runs in."""
    if _current is None:
        raise RuntimeError("a phase runs inside a worker; call its .work(job) to test it without one")
    return _current


def set_current(worker: WorkerProcess | None) -> None:
    global _current  # noqa: PLW0603  one worker a process is what a process is
    _current = worker


# A claim that PostgreSQL refuses altogether (its functions are not those of this code, say) is not asked for in a loop.
ASK_AGAIN = 5.0


class PhaseRetries(Retries):
    """Settles failed attempts: the phase raises, this classifies, computes the delay and makes the transition.

    The message is acknowledged afterwards; one whose budget is used up goes through the dead-letter exchange.
    """

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if exception is None or not isinstance(message, Delivery) or not message.deferred or message.abandoned:
            return
        worker = current()
        if message.attempt is None:
            worker.log.error("no answer to a claim; asking again", error=str(exception).strip())
            worker.inbound.set_aside(message, ASK_AGAIN)
            return
        if not message.attempt.finish():
            return
        # Still deferred: Dramatiq would swallow an exception raised here and acknowledge all the same.
        try:
            verdict = settle_error(worker, message.attempt, exception)
        except Exception:
            worker.log.exception("an attempt could not be settled; trying again", job=str(message.attempt.job_id))
            verdict = "locked"
        if verdict == "locked":
            later = (worker, message.attempt, exception)
            threading.Thread(target=settle_for_good, args=later, daemon=True).start()
            return
        if failpoints.armed:
            failpoints.reach("error.settled")
        if verdict in DEAD_LETTERED:
            message.fail()
        worker.held.remove(message.attempt)
        message.deferred = False


class Engine(Middleware):
    """Starts at worker boot, after the fork; nothing connects at import."""

    def __init__(self, declare_actors: Callable[[PipelineBroker], None]) -> None:
        self._declare_actors = declare_actors
        self._leading: Leading | None = None
        self._threads: Saturation | None = None
        self._loop: Saturation | None = None

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:
        with startup.whole_or_not_at_all():
            self._boot(cast(PipelineBroker, broker), worker)

    def _boot(self, ours: PipelineBroker, worker: Worker) -> None:
        startup.keep_together()
        config = _prepared()
        startup.survive_group_signals()
        # Workflows that were imported after the composition root.
        self._declare_actors(ours)
        inbound, outbound = ours.open()
        queues = sorted(worker.consumer_whitelist or ours.get_declared_queues())
        phase_queues = ours.get_declared_queues().intersection(queues) - {SWEEPS}
        inbound.expect(phase_queues)
        running = WorkerProcess(
            config, inbound, outbound, threads=worker.worker_threads, queues=queues, following=_following(queues)
        )
        set_current(running)
        if config.queue_type == "quorum":
            inbound.give_back = GiveBack(inbound).begin
        ours.before_close = lambda: self._finish(running)
        self._leading = Leading(config, running.no, outbound)
        self._leading.start()
        self._consume(ours, running, worker, phase_queues)

    def _consume(self, ours: PipelineBroker, running: WorkerProcess, worker: Worker, queues: set[str]) -> None:
        """Each kind of place takes messages of its own queues, so that neither keeps the other's."""
        assert ours.link is not None
        on_loop = queues & _asynchronous()
        # Acknowledgements follow the commit, so that one message a thread would leave threads idle. What a
        # busy process holds unstarted goes back to its queue (see Saturation).
        threads = Intake(queues - on_loop, 2 * worker.worker_threads)
        self._threads = Saturation(ours.link, running.inbound, threads, worker.worker_threads)
        running.stuck = StuckThreads(running, worker, self._threads.ended)
        intakes = [threads]
        if on_loop:
            places = running.settings.async_concurrency
            running.loop = EventLoop(ours, running, places)
            # With hundreds of places the next message is never far.
            intakes.append(Intake(on_loop, places, running.loop.receive))
            self._loop = Saturation(ours.link, running.inbound, intakes[1], places, hoards=False)
            running.loop.started, running.loop.ended = self._loop.started, self._loop.ended
            running.loop.start()
        consumer = consume_in_one_thread(worker, *intakes)
        running.run_in_thread = consumer.handle_message

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """Take nothing new; give running jobs a grace, then release them at no cost, with or without their threads."""
        running = current()
        assert running.stuck is not None
        cast(PipelineBroker, broker).exit_code = EXIT_CODE if running.stuck.draining else 0
        running.stuck.draining = True
        running.inbound.close_intake()
        sweeps.stopping.set()
        if not self._wait_until_idle(running.settings.shutdown_grace_seconds):
            running.release_all()
            if not self._wait_until_idle(GRACE + 1):
                # PostgreSQL is away, and they wait for it: Dramatiq would wait for them. They end with the process.
                worker.workers.clear()
        _let_threads_begin(worker)

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        if self._leading is not None:
            self._leading.stop()
        current().stop()

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        if not isinstance(message, Delivery) or message.queue == SWEEPS:
            return
        if self._threads is not None and _in_a_thread():
            current().take(message)
            self._threads.started()

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if not isinstance(message, Delivery) or message.queue == SWEEPS:
            return
        if message.abandoned:
            stuck = current().stuck
            if stuck is not None:
                stuck.came_back(message)
        elif self._threads is not None and _in_a_thread():
            self._threads.ended()

    def after_skip_message(self, broker: Broker, message: MessageProxy) -> None:
        self.after_process_message(broker, message)

    def _finish(self, running: WorkerProcess) -> None:
        running.committer.flush(5)

    def _wait_until_idle(self, timeout: float) -> bool:
        deadline = monotonic() + timeout
        kinds = [kind for kind in (self._threads, self._loop) if kind is not None]
        return all(kind.wait_until_idle(max(0.0, deadline - monotonic())) for kind in kinds)


def _prepared() -> Settings:
    """The settings, once everything they name can be used."""
    config = settings.get()
    logs.configure(config.log_format, config.log_level)
    failpoints.arm(config.failpoints)
    prepare(config)
    return config


def _any_isolated(queues: list[str]) -> bool:
    phases = (phase.spec for workflow in workflows().values() for phase in workflow.phases)
    return any(spec.isolated and spec.queue in queues for spec in phases)


def _following(queues: list[str]) -> dict[str, PhaseSpec]:
    """The phase after each, of those that this process serves."""
    chains = ([phase.spec for phase in workflow.phases] for workflow in workflows().values())
    pairs = (pair for chain in chains for pair in pairwise(chain))
    served = set(queues)
    return {spec.queue: following for spec, following in pairs if following.queue in served}


def _in_a_thread() -> bool:
    """Whether this is one of Dramatiq's. The event loop counts its own places, and settles errors in other threads."""
    return isinstance(threading.current_thread(), WorkerThread)


def _asynchronous() -> set[str]:
    """The queues of phases that run on the event loop."""
    phases = (phase.spec for workflow in workflows().values() for phase in workflow.phases)
    return {spec.queue for spec in phases if spec.kind == "async"}


def _let_threads_begin(worker: Worker) -> None:
    """Dramatiq's threads set their flag when they begin: one that is told to stop before that would never end."""
    deadline = monotonic() + 2
    threads: set[Any] = {*worker.workers, *worker.consumers.values()}
    for thread in threads:
        while thread.is_alive() and not thread.running and monotonic() < deadline:
            sleep(0.01)


# Sweeps have a thread of their own but may wait for a restart; a late sweep is still a good one.
LATE = 600


@lru_cache(maxsize=1)
def broker() -> PipelineBroker:
    """Made once a process. It is nobody's global broker unless the composition root makes it that."""
    made = PipelineBroker(
        _address, [Engine(declare_actors), PhaseRetries(), PeriodiqMiddleware(skip_delay=LATE)], essential_thread
    )
    schedule.declare(made)
    return made


def declare_actors(made: PipelineBroker) -> None:
    """An actor for every phase that was declared since the last call."""
    for workflow in workflows().values():
        for position, phase in enumerate(workflow.phases):
            if phase.spec.actor not in made.actors:
                _actor(made, phase, position)


def _actor(made: PipelineBroker, phase: DeclaredPhase, position: int) -> EngineActor:
    def run(*message: object) -> None:
        worker = current()
        in_thread(execute(worker, phase, message, worker.delivery(), THREAD))

    run.__module__ = phase.work.__module__
    actor = EngineActor(
        run,
        actor_name=phase.spec.actor,
        queue_name=phase.spec.queue,
        priority=position if phase.spec.start_first else -position,
        broker=made,
        # What a phase raises on purpose needs no traceback; its settlement is logged.
        options={"throws": (PipelineError, Interrupted)},
    )
    actor.phase = phase
    return actor


def _address() -> tuple[str, QueueType]:
    config = settings.get()
    return config.rabbitmq_url.get_secret_value(), config.queue_type
