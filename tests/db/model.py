"""What the tests believe about jobs, beside PostgreSQL: the same steps, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from pipeline.declare.states import FINAL, NEXT, Status, Step

PHASES = {"single": ["act"], "triple": ["first", "second", "third"], "pooled": ["narrow"]}
POOL = {"narrow": 3}
MAX_ATTEMPTS = MAX_CRASHES = 3


@dataclass
class Job:
    """A job as its row should be."""

    id: UUID
    workflow: str
    batch: UUID | None = None
    place: int = 0
    status: Status = Status.PENDING
    fence: int = 0
    send: int = 1
    attempts: int = 0
    crashes: int = 0
    holder: str | None = None
    isolated: bool = False
    sent: bool = False
    carried: bool = False
    later: bool = False
    counted: bool = False
    outcomes: dict[int, str] = field(default_factory=dict)

    @property
    def phase(self) -> str:
        return PHASES[self.workflow][self.place]

    @property
    def last_phase(self) -> bool:
        return self.place == len(PHASES[self.workflow]) - 1

    @property
    def waits(self) -> bool:
        return self.status in (Status.PENDING, Status.RETRYABLE)

    def allows(self, step: Step) -> bool:
        return (self.status, step) in NEXT

    def held_by(self, fence: int) -> bool:
        return self.status is Status.RUNNING and self.fence == fence

    # ---- steps

    def claim(self, worker: str) -> None:
        self._go(Step.CLAIM)
        self.fence += 1
        self.holder, self.sent, self.later = worker, False, False
        self.isolated = self.crashes > 0

    def take_over(self, worker: str) -> str:
        """The verdict."""
        self.crashes += 0 if self.isolated or self.holder == worker else 1
        if self.crashes >= MAX_CRASHES:
            self._fail("poisoned")
            return "poisoned"
        self.outcomes[self.fence] = "crashed"
        if self.carried:
            self._wait(Step.RECLAIM)
            return "continued"
        self._go(Step.TAKE_OVER)
        self.fence += 1
        self.holder, self.isolated = worker, self.crashes > 0
        return "claimed"

    def complete(self, continues: bool = False) -> str:
        self.outcomes[self.fence] = "succeeded"
        if self.last_phase:
            self._go(Step.COMPLETE)
            self.send += 1
            self._end()
            return "done"
        if continues:
            self._go(Step.CONTINUE)
            self.fence += 1
            self.isolated, self.carried = False, True
        else:
            self._wait(Step.HAND_OVER)
        self.place, self.attempts, self.crashes = self.place + 1, 0, 0
        return "continued" if continues else "handed_over"

    def retry(self, later: bool) -> str:
        self.attempts += 1
        if self.attempts >= MAX_ATTEMPTS:
            return self._fail("exhausted")
        self.outcomes[self.fence] = "retried"
        self._wait(Step.RETRY, later)
        return "retried"

    def fail(self) -> str:
        self.attempts += 1
        return self._fail("failed")

    def snooze(self, outcome: str, later: bool) -> str:
        self.outcomes[self.fence] = outcome
        self._wait(Step.SNOOZE if outcome == "snoozed" else Step.RELEASE, later)
        return outcome

    def crash(self, counts: bool) -> str:
        self.crashes += int(counts)
        if counts and self.crashes >= MAX_CRASHES:
            return self._fail("poisoned")
        self.outcomes[self.fence] = "crashed"
        self._wait(Step.RECLAIM)
        return "crashed"

    def cancel(self) -> None:
        if self.status is not Status.RUNNING:
            self.fence += 1
        self.outcomes[self.fence] = "cancelled"
        self._go(Step.CANCEL)
        self._end()

    def undeliverable(self) -> None:
        self.fence += 1
        self.outcomes[self.fence] = "undeliverable"
        self._go(Step.UNDELIVERABLE)
        self._end()

    def expire(self) -> None:
        self.fence += 1
        self.outcomes[self.fence] = "expired"
        self._go(Step.EXPIRE)
        self.send += 1
        self._end()

    def discard(self) -> None:
        self._go(Step.DISCARD)
        self.send += 1

    def replay(self) -> None:
        self._wait(Step.REPLAY)
        self.attempts = self.crashes = 0

    # ---- their shared ends

    def _go(self, step: Step) -> None:
        self.status = NEXT[(self.status, step)]

    def _wait(self, step: Step, later: bool = False) -> None:
        self._go(step)
        self.send += 1
        self.holder, self.isolated, self.sent, self.later, self.carried = None, False, False, later, False

    def _fail(self, outcome: str) -> str:
        self.outcomes[self.fence] = outcome
        self._go(Step.FAIL)
        self._end()
        return outcome

    def _end(self) -> None:
        assert self.status in FINAL
        self.holder, self.isolated, self.sent, self.later, self.carried = None, False, False, False, False
        self.counted = self.counted or self.batch is not None


def claim_verdict(job: Job, send: int | None, jobs: Iterable[Job]) -> str:
    """What a message with this send number hears when it asks for the job; none is a bare message."""
    match job.status:
        case Status.SUCCEEDED:
            return "finished"
        case Status.CANCELLED:
            return "cancelled"
        case _ if send is not None and send != job.send:
            return "superseded"
        case Status.FAILED:
            return "finished" if send is None else "failed"
        case Status.RUNNING:
            return "running"
    if send is None and (job.sent or job.later):
        return "already_queued"
    taken = sum(other.phase == job.phase and (other.holder is not None or other.sent) for other in jobs)
    return "pool_full" if not job.sent and taken >= POOL.get(job.phase, 10**6) else "claimed"
