"""What happens to a message, from its arrival in a worker thread to the settlement of its job."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from pipeline.declare.outcome import Done, as_done
from pipeline.declare.registry import DeclaredPhase, Work
from pipeline.journey.claim import claim_phase
from pipeline.journey.envelope import InvalidEnvelope
from pipeline.journey.settle import settle
from pipeline.journey.token import read_token
from pipeline.observe.counters import count
from pipeline.observe.histograms import observe_duration
from pipeline.observe.tracing import phase_span

if TYPE_CHECKING:
    from pipeline.broker.delivery import Delivery
    from pipeline.declare.phase import PhaseSpec
    from pipeline.journey.attempt import Claim
    from pipeline.store.group_statement import Completed
    from pipeline.worker.process import WorkerProcess


def execute(worker: WorkerProcess, phase: DeclaredPhase, message: tuple[object, ...]) -> None:
    """Claim the message's job, do the work, settle. Errors go to the Retries middleware, which settles them."""
    delivery = worker.delivery()
    # From here on the message is acknowledged only for a reason: a settled job, or nothing to do.
    delivery.deferred = True
    # A job that went on in this worker comes with its claim.
    claim = delivery.claim or receive(worker, phase.spec, message, delivery)
    if claim is None:
        return
    # The heartbeat goes on until the settlement commits, however long PostgreSQL lets it wait. After an exception that
    # is the Retries middleware's business.
    settle(worker, claim, attempt(worker, claim, phase.work))


def receive(worker: WorkerProcess, spec: PhaseSpec, message: tuple[object, ...], delivery: Delivery) -> Claim | None:
    """Claim the message's job, or find out that there is nothing to do."""
    if not worker.inbound.begin(delivery):
        return None
    try:
        token = read_token(spec, message)
    except InvalidEnvelope as error:
        count("refused.invalid_envelope")
        worker.log.error("message refused", queue=spec.queue, reason=str(error))
        delivery.fail()
        delivery.deferred = False
        return None
    claim = delivery.claim = claim_phase(worker, spec, token, delivery)
    return claim


def attempt(worker: WorkerProcess, claim: Claim, work: Work) -> Done | Completed:
    """Run the work under the claim, in this thread or in a child process of its own."""
    job = worker.job(claim)
    claim.job = job
    worker.hold(claim)
    started = monotonic()
    try:
        with claim, phase_span(claim.spec.queue, job.traceparent, job=str(job.id), fence=job.fence) as traceparent:
            job.span = traceparent
            return worker.run_isolated(claim) if claim.isolated else as_done(work(job))
    finally:
        if not claim.abandoned:
            observe_duration(claim.spec.queue, monotonic() - started)
        job.clean_up()
