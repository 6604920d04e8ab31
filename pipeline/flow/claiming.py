"""Getting hold of a job: claim it, take it over from a dead holder, or learn why not."""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import text

from pipeline.flow import database
from pipeline.flow.claim import Claim
from pipeline.flow.group_statement import Ask, ClaimRow
from pipeline.observe.counters import count
from pipeline.rules.phase import PhaseSpec

if TYPE_CHECKING:
    from pipeline.broker.delivery import Delivery
    from pipeline.flow.process import WorkerProcess
    from pipeline.flow.token import Token

# A lock that is free for a moment may belong to a worker that is just reconnecting: look twice.
SECOND_LOOK = 0.3
LOOKS = 20
ALIVE = text("SELECT pipeline_alive(:holder), now() - pg_postmaster_start_time() < interval '3 seconds'")
TAKE_OVER = text("SELECT pipeline_take_over(:worker, :id, :send, :holder, :fence, :delivery)")
REPLAY = text("SELECT pipeline_replay(:id, :send)")
TELL_RELAY = text("SELECT pg_notify('pipeline_relay', 'dead')")


def claim_phase(worker: WorkerProcess, spec: PhaseSpec, token: Token, delivery: Delivery) -> Claim | None:
    """A claim, or None when the message has nothing to do; the reason is counted. Looks again while it is unstable."""
    for _ in range(LOOKS):
        row = worker.committer.claim(Ask(token.job_id, spec.queue, token.send, token.sent_at, delivery))
        verdict, holder = row.verdict, row.holder
        if verdict == "claimed":
            return _claim(spec, token.job_id, row, delivery)
        if verdict == "failed" and delivery.revived:
            _revive(token)
            return None
        if verdict != "running" or token.send is None:
            _refuse(worker, token, verdict)
            return None
        verdict = _meet(worker, token, holder or "", row.fence, delivery)
        if verdict == "poisoned":
            delivery.fail()
        if verdict in ("held", "poisoned", "went_on"):
            _refuse(worker, token, "already_running" if verdict == "held" else verdict)
            return None
    _refuse(worker, token, "unstable")
    return None


def _meet(worker: WorkerProcess, token: Token, holder: str, fence: int, delivery: Delivery) -> str:
    """The job runs elsewhere. A living holder keeps it; a dead one loses it to us, under a new fence."""
    free = holder != worker.id and _lock_is_free(holder)
    ours = holder == worker.id and not worker.runs(token.job_id)
    if free or ours:
        sleep(SECOND_LOOK)
        free, ours = free and _lock_is_free(holder), ours and not worker.runs(token.job_id)
    if holder == worker.id and not ours:
        return "held"
    values = {"worker": worker.id, "id": token.job_id, "send": token.send, "holder": holder, "fence": fence,
              "delivery": delivery.id}  # fmt: skip
    # A take-over whose answer is lost must be asked for again by us: to all others we would look like its holder.
    verdict: str = database.insist(lambda connection: connection.execute(TAKE_OVER, values).scalar_one())
    if free:
        database.insist(lambda connection: connection.execute(TELL_RELAY))
    if verdict == "claimed":
        count("taken_over")
        worker.log.warning("took over from a dead worker", job=str(token.job_id), holder=holder)
    return verdict


def _lock_is_free(holder: str) -> bool:
    """Just after a restart of PostgreSQL every lock is free; wait until workers have had time to take theirs."""
    while True:
        with database.engine().connect() as connection:
            alive, restarted = connection.execute(ALIVE, {"holder": holder}).one()
        if alive or not restarted:
            return not alive
        sleep(SECOND_LOOK)


def _revive(token: Token) -> None:
    with database.engine().begin() as connection:
        revived = connection.execute(REPLAY, {"id": token.job_id, "send": token.send}).scalar_one()
    count("revived" if revived else "refused.superseded")


def _refuse(worker: WorkerProcess, token: Token, reason: str) -> None:
    count(f"refused.{reason}")
    worker.log.info("message had nothing to do", job=str(token.job_id), send=token.send, reason=reason)


def _claim(spec: PhaseSpec, job_id: UUID, row: ClaimRow, delivery: Delivery) -> Claim:
    return Claim(
        spec=spec, job_id=job_id, fence=row.fence, attempts=row.attempts, max_attempts=row.max_attempts,
        crashes=row.crashes, isolated=bool(row.isolated), priority=row.priority, body=row.body,
        results=row.result or {}, trace_id=row.trace_id, span_id=row.span_id, delivery=delivery,
    )  # fmt: skip
