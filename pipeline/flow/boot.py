"""The middleware that turns a Dramatiq worker into one of ours: boots it, counts busy threads, shuts it down."""

from __future__ import annotations

import sys
import threading
from itertools import pairwise
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from dramatiq.middleware import Middleware

from pipeline import settings
from pipeline.broker import broker as brokers
from pipeline.broker.delivery import Delivery
from pipeline.flow import caretaker, memory, process, signals
from pipeline.flow.process import WorkerProcess
from pipeline.flow.saturation import Saturation
from pipeline.observe import logs
from pipeline.rules.errors import BadInput
from pipeline.rules.phase import PhaseSpec
from pipeline.settings import Settings

if TYPE_CHECKING:
    from dramatiq import Broker, Worker
    from dramatiq.broker import MessageProxy


class Engine(Middleware):
    """Starts at worker boot, after the fork; nothing connects at import."""

    def __init__(self) -> None:
        self._caretaker: caretaker.Caretaker | None = None
        self._saturation: Saturation | None = None

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:
        memory.keep_together()
        config = _prepared()
        signals.survive_group_signals()
        ours = brokers.current()
        inbound, outbound = ours.open()
        # Acknowledgements follow the commit, so that one message a thread would leave threads idle. What a
        # busy process holds unstarted goes back to its queue (see Saturation).
        worker.queue_prefetch = 2 * worker.worker_threads
        queues = sorted(worker.consumer_whitelist or ours.get_declared_queues())
        inbound.expect(ours.get_declared_queues().intersection(queues))
        running = WorkerProcess(
            config, inbound, outbound, threads=worker.worker_threads, queues=queues, following=_following(queues)
        )
        process.set_current(running)
        ours.before_close = lambda: self._finish(running)
        assert ours.link is not None
        self._saturation = Saturation(ours.link, inbound, worker.worker_threads)
        self._caretaker = caretaker.Caretaker(config, running.no, running.id, outbound)
        self._caretaker.start()

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """Take nothing new; give running jobs a grace, then hand them back at no cost."""
        _let_threads_begin(worker)
        running = process.current()
        running.inbound.pause()
        timer = threading.Timer(running.settings.shutdown_grace_seconds, _hand_back, [running])
        timer.daemon = True
        timer.start()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        if self._caretaker is not None:
            self._caretaker.stop()
        process.current().stop()

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        if isinstance(message, Delivery) and self._saturation is not None:
            process.current().take(message)
            self._saturation.started()

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if self._saturation is not None:
            self._saturation.ended()

    def after_skip_message(self, broker: Broker, message: MessageProxy) -> None:
        self.after_process_message(broker, message)

    def _finish(self, running: WorkerProcess) -> None:
        running.committer.flush(30)


def _prepared() -> Settings:
    """The settings, once everything they name can be used. Dramatiq would log an error here and go on without us."""
    from pipeline.flow.prepare import prepare  # the workflows' own imports come back to this module

    try:
        config = settings.get()
        logs.configure(config.log_format, config.log_level)
        prepare(config)
    except BadInput as error:
        sys.stderr.write(f"pipeline: {error}\n")
        raise SystemExit(3) from None
    return config


def _following(queues: list[str]) -> dict[str, PhaseSpec]:
    """The phase after each, of those that this process serves."""
    from pipeline.flow.workflow import workflows  # as above

    chains = ([actor.spec for actor in workflow.phases] for workflow in workflows().values())
    pairs = (pair for chain in chains for pair in pairwise(chain))
    return {spec.queue: following for spec, following in pairs if following.queue in queues}


def _let_threads_begin(worker: Worker) -> None:
    """Dramatiq's threads set their flag when they begin: one that is told to stop before that would never end."""
    deadline = monotonic() + 2
    threads: list[Any] = [*worker.workers, *worker.consumers.values()]
    for thread in threads:
        while thread.is_alive() and not thread.running and monotonic() < deadline:
            sleep(0.01)


def _hand_back(running: WorkerProcess) -> None:
    for claim in running.presence.held():
        claim.interrupt("shutdown")
