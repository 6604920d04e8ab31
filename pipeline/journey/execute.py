"""What happens to a message, from its arrival in a worker thread to the settlement of its job."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from pipeline.declare.job import Done, as_done
from pipeline.declare.registry import DeclaredPhase, Work
from pipeline.journey.claim import claim_phase
from pipeline.journey.message import InvalidEnvelope, read_ref
from pipeline.journey.settle import settle
from pipeline.observe.instruments import count, observe_duration, phase_span

if TYPE_CHECKING:
    from pipeline.broker.delivery import Delivery
    from pipeline.declare.phase import PhaseSpec
    from pipeline.journey.attempt import Attempt
    from pipeline.store.group_commit import Completed
    from pipeline.worker.process import WorkerProcess


def execute(worker: WorkerProcess, phase: DeclaredPhase, message: tuple[object, ...]) -> None:
    """Claim the message's job, do the work, settle. Errors go to the Retries middleware, which settles them."""
    delivery = worker.delivery()
    # From here on the message is acknowledged only for a reason: a settled job, or nothing to do.
    delivery.deferred = True
    # A job that continues in this worker comes with its attempt.
    attempt = delivery.attempt or receive(worker, phase.spec, message, delivery)
    if attempt is None:
        return
    # The heartbeat goes on until the settlement commits, however long PostgreSQL lets it wait. After an exception that
    # is the Retries middleware's business.
    settle(worker, attempt, run(worker, attempt, phase.work))


def receive(worker: WorkerProcess, spec: PhaseSpec, message: tuple[object, ...], delivery: Delivery) -> Attempt | None:
    """Claim the message's job, or find out that there is nothing to do."""
    if not worker.inbound.begin(delivery):
        return None
    try:
        ref = read_ref(spec, message)
    except InvalidEnvelope as error:
        count("refused.invalid_envelope")
        worker.log.error("message refused", queue=spec.queue, reason=str(error))
        delivery.fail()
        delivery.deferred = False
        return None
    attempt = delivery.attempt = claim_phase(worker, spec, ref, delivery)
    return attempt


def run(worker: WorkerProcess, attempt: Attempt, work: Work) -> Done | Completed:
    """Do the work, in this thread or in a child process of its own."""
    job = worker.job(attempt)
    attempt.job = job
    worker.hold(attempt)
    started = monotonic()
    try:
        with attempt, phase_span(attempt.spec.queue, job.traceparent, job=str(job.id), fence=job.fence) as traceparent:
            job.span = traceparent
            return worker.run_isolated(attempt) if attempt.isolated else as_done(work(job))
    finally:
        if not attempt.abandoned:
            observe_duration(attempt.spec.queue, monotonic() - started)
        job.clean_up()
