"""The middleware that turns a Dramatiq worker into one of ours: boots it, counts busy threads, shuts it down."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, cast

from dramatiq.middleware import Middleware

from pipeline import settings
from pipeline.broker.broker import PipelineBroker
from pipeline.broker.consumer import consume_in_one_thread
from pipeline.broker.delivery import Delivery
from pipeline.broker.topology import SWEEPS
from pipeline.declare.phase import PhaseSpec
from pipeline.declare.registry import workflows
from pipeline.maintenance import sweeps
from pipeline.maintenance.leading import Leading
from pipeline.observe import logs
from pipeline.settings import Settings
from pipeline.worker import process, startup
from pipeline.worker.deadlines import GRACE
from pipeline.worker.prepare import prepare
from pipeline.worker.process import WorkerProcess
from pipeline.worker.saturation import Saturation
from pipeline.worker.stuck import EXIT_CODE, StuckThreads

if TYPE_CHECKING:
    from dramatiq import Broker, Worker
    from dramatiq.broker import MessageProxy


class Engine(Middleware):
    """Starts at worker boot, after the fork; nothing connects at import."""

    def __init__(self, declare_actors: Callable[[PipelineBroker], None]) -> None:
        self._declare_actors = declare_actors
        self._leading: Leading | None = None
        self._saturation: Saturation | None = None

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
        # Acknowledgements follow the commit, so that one message a thread would leave threads idle. What a
        # busy process holds unstarted goes back to its queue (see Saturation).
        worker.queue_prefetch = 2 * worker.worker_threads
        queues = sorted(worker.consumer_whitelist or ours.get_declared_queues())
        phase_queues = ours.get_declared_queues().intersection(queues) - {SWEEPS}
        inbound.expect(phase_queues)
        running = WorkerProcess(
            config, inbound, outbound, threads=worker.worker_threads, queues=queues, following=_following(queues)
        )
        process.set_current(running)
        ours.before_close = lambda: self._finish(running)
        assert ours.link is not None
        self._saturation = Saturation(ours.link, inbound, worker.worker_threads)
        running.stuck = StuckThreads(running, worker, self._saturation.ended)
        self._leading = Leading(config, running.no, outbound)
        self._leading.start()
        consume_in_one_thread(worker, phase_queues)

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """Take nothing new; give running jobs a grace, then release them at no cost, with or without their threads."""
        running = process.current()
        assert self._saturation is not None and running.stuck is not None
        cast(PipelineBroker, broker).exit_code = EXIT_CODE if running.stuck.draining else 0
        running.stuck.draining = True
        running.inbound.close_intake()
        sweeps.stopping.set()
        if not self._saturation.wait_until_idle(running.settings.shutdown_grace_seconds):
            running.release_all()
            if not self._saturation.wait_until_idle(GRACE + 1):
                # PostgreSQL is away, and they wait for it: Dramatiq would wait for them. They end with the process.
                worker.workers.clear()
        _let_threads_begin(worker)

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        if self._leading is not None:
            self._leading.stop()
        process.current().stop()

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        if isinstance(message, Delivery) and message.queue != SWEEPS and self._saturation is not None:
            process.current().take(message)
            self._saturation.started()

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if not isinstance(message, Delivery) or message.queue == SWEEPS:
            return
        if message.abandoned:
            stuck = process.current().stuck
            if stuck is not None:
                stuck.came_back()
        elif self._saturation is not None:
            self._saturation.ended()

    def after_skip_message(self, broker: Broker, message: MessageProxy) -> None:
        self.after_process_message(broker, message)

    def _finish(self, running: WorkerProcess) -> None:
        running.committer.flush(5)


def _prepared() -> Settings:
    """The settings, once everything they name can be used."""
    config = settings.get()
    logs.configure(config.log_format, config.log_level)
    prepare(config)
    return config


def _following(queues: list[str]) -> dict[str, PhaseSpec]:
    """The phase after each, of those that this process serves."""
    chains = ([phase.spec for phase in workflow.phases] for workflow in workflows().values())
    pairs = (pair for chain in chains for pair in pairwise(chain))
    served = set(queues)
    return {spec.queue: following for spec, following in pairs if following.queue in served}


def _let_threads_begin(worker: Worker) -> None:
    """Dramatiq's threads set their flag when they begin: one that is told to stop before that would never end."""
    deadline = monotonic() + 2
    threads: set[Any] = {*worker.workers, *worker.consumers.values()}
    for thread in threads:
        while thread.is_alive() and not thread.running and monotonic() < deadline:
            sleep(0.01)
