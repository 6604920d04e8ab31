"""A message whose job cannot be claimed now: it runs elsewhere, its row is locked, or it is over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import sleep
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from pipeline.declare.errors import database_is_unable
from pipeline.journey.settle import DEAD_LETTERED
from pipeline.observe import failpoints
from pipeline.observe.instruments import count
from pipeline.store import database
from pipeline.store.gateway import client, session, settlement

if TYPE_CHECKING:
    from uuid import UUID

    from pipeline.broker.inbound import Delivery
    from pipeline.journey.message import MessageRef
    from pipeline.store.gateway.settlement import TakeOver
    from pipeline.worker.process import WorkerProcess

# A lock that is free for a moment may belong to a worker that is just reconnecting: look twice.
# A living one has its lock back within 0.3 s.
SECOND_LOOK = 0.5
# After an outage every lock is free for a moment: this process, or PostgreSQL itself, must have been back for so long.
SETTLED = 3.0
# A row that another transaction holds is asked for again soon, while the thread waits, and then with the message set
# aside and the thread free: an application may hold it for as long as it likes.
LOCKED_LOOKS = (0.03, 0.1)
ASIDE, LONGEST_ASIDE = 0.5, 5.0
# How long a failed job's row is waited for, in milliseconds.
BRIEFLY = 200


def set_aside(worker: WorkerProcess, delivery: Delivery) -> bool:
    """Look again soon, in this thread at first. True if the message waits on its own from now on."""
    delivery.looks += 1
    if delivery.looks <= len(LOCKED_LOOKS):
        sleep(LOCKED_LOOKS[delivery.looks - 1])
        return False
    count("set_aside")
    further = delivery.looks - len(LOCKED_LOOKS) - 1
    worker.inbound.set_aside(delivery, min(ASIDE * 2 ** min(further, 8), LONGEST_ASIDE))
    return True


class Holders:
    """Whether the holders of jobs that messages meet running are gone. Each is looked at once for all who ask.

    A process that dies leaves as many messages as it had jobs in hand, and they arrive together.
    """

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker
        self._looks: dict[object, Future[bool]] = {}
        self._lock = threading.Lock()

    def look(self, job_id: UUID, holder: str) -> Future[bool]:
        """The answer comes after two looks. A job of this very worker is gone if nobody here runs it."""
        if holder == self._worker.id:
            return self._begin(job_id, lambda: not self._worker.runs(job_id))
        return self._begin(holder, lambda: _lock_is_free(self._worker, holder))

    def _begin(self, whom: object, gone: Callable[[], bool]) -> Future[bool]:
        with self._lock:
            if whom in self._looks:
                return self._looks[whom]
            look = self._looks[whom] = Future()
        threading.Thread(target=self._look, args=(whom, gone, look), daemon=True).start()
        return look

    def _look(self, whom: object, gone: Callable[[], bool], look: Future[bool]) -> None:
        try:
            seen = _seen_twice(gone)
        except BaseException as error:
            self._forget(whom)
            look.set_exception(error)
            return
        self._forget(whom)
        look.set_result(seen)

    def _forget(self, whom: object) -> None:
        """Whoever asks from now on needs a new look."""
        with self._lock:
            del self._looks[whom]


def meet(
    worker: WorkerProcess, ref: MessageRef, delivery: Delivery, *, holder: str, fence: int, gone: bool
) -> TakeOver:
    """The job runs elsewhere. A living holder keeps it; a dead one loses it to us, under a new fence."""
    if holder == worker.id and not gone:
        return "held"
    # A take-over whose answer is lost must be asked for again by us: to all others we would look like its holder.
    verdict = database.insist(
        lambda connection: settlement.take_over(
            connection,
            ref.job_id,
            worker_id=worker.id,
            send=ref.send,
            holder=holder,
            fence=fence,
            delivery=delivery.id,
        )
    )
    if gone and holder != worker.id:
        database.insist(settlement.tell_maintenance)
    if verdict == "claimed":
        if failpoints.armed:
            failpoints.reach("takeover.committed")
        count("taken_over")
        worker.log.warning("took over from a dead worker", job=str(ref.job_id), holder=holder)
    return verdict


def _seen_twice(gone: Callable[[], bool]) -> bool:
    """Whether it is so at two looks in a row. Also if it is not so yet at the first: the message of a worker that was
    killed can be here before PostgreSQL has noticed, and nobody would find the job again for a while."""
    first, second = gone(), False
    for _ in range(2):
        sleep(SECOND_LOOK)
        second = gone()
        if first or not second:
            break
        first = second
    return first and second


def _lock_is_free(worker: WorkerProcess, holder: str) -> bool:
    """Just after an outage every lock is free; wait until workers have had time to take theirs again."""
    while True:
        alive, up = database.insist(lambda connection: settlement.alive(connection, holder))
        if alive or min(up, worker.liveness.back_for()) >= SETTLED:
            return not alive
        sleep(SECOND_LOOK)


def refuse(worker: WorkerProcess, ref: MessageRef, delivery: Delivery, verdict: str) -> None:
    """The message has nothing to do: it is acknowledged, or is a dead letter."""
    delivery.deferred = False
    if verdict == "failed" and delivery.revived:
        _revive(worker, ref, delivery)
        return
    if verdict == "poisoned" or (verdict == "failed" and _is_dead_letter(ref)):
        delivery.fail()
    reason = "already_running" if verdict in ("held", "running") else verdict
    count(f"refused.{reason}")
    worker.log.info("message had nothing to do", job=str(ref.job_id), send=ref.send, reason=reason)


def _is_dead_letter(ref: MessageRef) -> bool:
    """Its budget was used up, and the connection broke before the message could be rejected: it is rejected now."""
    return database.insist(lambda connection: settlement.last_outcome(connection, ref.job_id)) in DEAD_LETTERED


def _revive(worker: WorkerProcess, ref: MessageRef, delivery: Delivery) -> None:
    """A message that was moved back from the dead-letter queue starts its failed job again."""
    try:
        with database.engine().begin() as connection:
            session.bound_lock_waits(connection, BRIEFLY)
            revived = client.replay_send(connection, ref.job_id, ref.send)
    except SQLAlchemyError as error:
        if not database_is_unable(error):
            raise
        delivery.deferred = True
        worker.inbound.set_aside(delivery, LONGEST_ASIDE)
        return
    count("revived" if revived else "refused.superseded")
