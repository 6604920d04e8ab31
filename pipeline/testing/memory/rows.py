"""A job in memory and its steps: what the SQL functions of the same names do to a row, by the same table of states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from pipeline.declare.errors import BadInput
from pipeline.declare.phase import PhaseSpec
from pipeline.declare.registry import DeclaredPhase, DeclaredWorkflow
from pipeline.declare.states import FINAL, NEXT, Outcome, Status, Step
from pipeline.declare.waits.next import Next
from pipeline.store.gateway.settlement import Crash, Fail, Release, Retry, Snooze, Transition
from pipeline.testing.run import AttemptRecord

# As in snooze.sql: so many waits in a row that the other side asked for are free.
FREE_WAITS, LONGEST_GROWTH = 100, 60.0
# As in signal.sql: so many events in a job's life.
MOST_SIGNALS = 1000


class Refused(RuntimeError):
    """A step that the state machine does not have: PostgreSQL would refuse it, too."""


@dataclass(eq=False)
class Row:
    """One job. ``results`` are JSON by phase. ``due``: when it may run; None: now, or once it has what it ``waits_for``
    (``event:<name>`` or ``children:<batch>``). ``order``: its place in the queue.

    ``ended`` hears of the job's end; it may come again after a replay.
    """

    id: UUID
    workflow: DeclaredWorkflow
    body: str
    priority: int
    order: int
    due: datetime | None
    trace_id: str
    span_id: str
    ended: Callable[[Row], None]
    batch: UUID | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    expires: datetime | None = None
    # What an application submits in a transaction of its own exists once that commits.
    committed: bool = True
    status: Status = Status.PENDING
    place: int = 0
    fence: int = 0
    attempts: int = 0
    crashes: int = 0
    waits: int = 0
    wait_reason: str | None = None
    waits_for: str | None = None
    # What it waited for when it was cancelled, and until when: a replay waits for the same again.
    waited_for: tuple[str, datetime | None] | None = None
    # Events that it was told of and has not waited for, as JSON, and how many there were in its life.
    signals: list[tuple[str, str]] = field(default_factory=list)
    told: int = 0
    error: str | None = None
    progress: tuple[int, int] | None = None
    # Whether its batch has counted it: once in its life.
    counted: bool = False
    # What steps returned, as JSON, by phase and name.
    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    history: list[AttemptRecord] = field(default_factory=list)

    @property
    def phase(self) -> DeclaredPhase:
        return self.workflow.phases[self.place]

    @property
    def spec(self) -> PhaseSpec:
        return self.phase.spec

    @property
    def isolated(self) -> bool:
        """After its first crash a job runs isolated, so that only its own crash counts."""
        return self.spec.isolated or self.crashes > 0

    @property
    def result(self) -> str:
        """All results, as one JSON object."""
        return "{" + ",".join(f'"{phase}":{result}' for phase, result in self.results.items()) + "}"

    def is_due(self, now: datetime) -> bool:
        waits = self.status in (Status.PENDING, Status.RETRYABLE)
        due = self.waits_for is None if self.due is None else self.due <= now
        return self.committed and waits and due

    def held(self, fence: int) -> bool:
        """Whether the attempt with this fence still holds the job: otherwise nothing that it does counts."""
        return self.status is Status.RUNNING and self.fence == fence

    # ---- the steps

    def claim(self) -> int:
        """The new fence."""
        self._go(Step.CLAIM)
        # If it waited for somebody, that time is over.
        self.waits_for = None
        self.fence += 1
        return self.fence

    def complete(self, result: str | None, following: Next | None, now: datetime, order: int) -> None:
        """The phase succeeded: the job ends, or goes to the next gate, where it waits if ``following`` says so."""
        self._record("succeeded")
        if result is not None:
            self.results[self.spec.name] = result
        self.waits, self.error, self.progress = 0, None, None
        place = self._next_place(following)
        if place == len(self.workflow.phases):
            self._end(Step.COMPLETE)
            return
        self.place, self.attempts, self.crashes = place, 0, 0
        if following is None:
            self._wait(Step.HAND_OVER, order)
        elif following.phase is not None:
            # Phases that it comes to once more run their steps anew.
            self.steps.clear()
            self._wait(Step.HAND_OVER, order)
        else:
            self._wait_for(following, now, order)

    def tell(self, event: str, body: str, now: datetime) -> str:
        """As in signal.sql."""
        if self.status in FINAL:
            return "final"
        if self.told >= MOST_SIGNALS:
            raise BadInput(f"job {self.id} has been told of {MOST_SIGNALS} events, which is the limit")
        self.told += 1
        self.signals.append((event, body))
        return "delivered" if self.take_signal(now) else "kept"

    def take_signal(self, now: datetime) -> bool:
        """Have what it waits for, if it was told of that: the oldest first, each once."""
        for place, (event, body) in enumerate(self.signals):
            if self.end_wait(f"event:{event}", body, "signalled", now):
                del self.signals[place]
                return True
        return False

    def end_wait(self, waits_for: str, result: str, reason: str, now: datetime) -> bool:
        """The result is that of the phase that ended with the wait. False if it does not wait for this (any more)."""
        if self.waited_for == (waits_for, None):
            # It was cancelled with its children: a replay continues with their ends.
            self.waited_for, self.results[self._phase_of_wait()] = None, result
        if self.waits_for != waits_for or (self.due is not None and self.due <= now):
            return False
        self.waits_for = self.due = None
        self.wait_reason = reason
        self.results[self._phase_of_wait()] = result
        return True

    def settle(self, transition: Transition, now: datetime, order: int) -> None:
        """What an error made of the attempt."""
        match transition:
            case Retry(error, delay):
                self._retry(error, now + timedelta(seconds=delay), order)
            case Fail(error):
                self.attempts += 1
                self._fail("failed", error)
            case Crash(error):
                self._crash(error, order)
            case Snooze():
                self._snooze(transition, now, order)
            case Release():
                self._record("released")
                self._wait(Step.RELEASE, order, now, "shutdown")

    def replace(
        self, body: str, priority: int, due: datetime | None, *, tags: tuple[str, ...], expires: datetime | None
    ) -> None:
        """While it waits unsent it becomes what was submitted last under its key, and keeps its place."""
        self.body, self.priority, self.due, self.tags, self.expires = body, priority, due, tags, expires
        self.wait_reason = None if due is None else "scheduled"

    def expire(self, now: datetime) -> None:
        """Fail if it has not begun in time; nothing otherwise."""
        if self.expires is None or self.expires > now or self.fence > 0 or self.status is not Status.PENDING:
            return
        self.fence += 1
        self.error = f"Expired: it had not begun by {self.expires.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        self._record("expired", self.error)
        self._end(Step.EXPIRE)

    def cancel(self, reason: str) -> None:
        if self.status is not Status.RUNNING:
            self.fence += 1
        self._record("cancelled", reason)
        self.error = reason
        self.waited_for = None if self.waits_for is None else (self.waits_for, self.due)
        self._end(Step.CANCEL)

    def replay(self, order: int) -> None:
        self.attempts = self.crashes = self.waits = 0
        self.error = None
        self._wait(Step.REPLAY, order)
        if self.waited_for is not None:
            (self.waits_for, self.due), self.waited_for = self.waited_for, None
            self.wait_reason = self.waits_for.partition(":")[0]

    # ---- their shared ends

    def _retry(self, error: str, due: datetime, order: int) -> None:
        self.attempts += 1
        if self.attempts >= self.spec.max_attempts:
            self._fail("exhausted", error)
            return
        self._record("retried", error, before=1)
        self.error = error
        self._wait(Step.RETRY, order, due, "backoff")

    def _crash(self, error: str, order: int) -> None:
        self.crashes += 1
        if self.crashes >= self.spec.max_crashes:
            self._fail("poisoned", error, f"poison pill after {self.crashes} crashes: {error}", before=0)
            return
        self._record("crashed", error)
        self.error = error
        self._wait(Step.RECLAIM, order)

    def _snooze(self, snooze: Snooze, now: datetime, order: int) -> None:
        delay, waits = snooze.delay, self.waits
        if snooze.asked:
            self.waits += 1
            delay = max(delay, min(1.25 ** min(waits, FREE_WAITS), LONGEST_GROWTH))
        due = now + timedelta(seconds=delay)
        if snooze.asked and waits >= FREE_WAITS:
            said = snooze.error or snooze.reason
            self._retry(f"the other side asked to wait {waits + 1} times in a row: {said}", due, order)
            return
        if snooze.step is not None:
            self.steps.setdefault(self.spec.name, {})[snooze.step] = "null"
        self._record("snoozed", snooze.error)
        self._wait(Step.SNOOZE, order, due, snooze.reason)

    def _fail(self, outcome: Outcome, error: str, told: str | None = None, before: int = 1) -> None:
        self._record(outcome, error, before=before)
        self.error = told or error
        self._end(Step.FAIL)

    def _record(self, outcome: Outcome, error: str | None = None, before: int = 0) -> None:
        """``before``: how many failures the attempt itself has added."""
        number = self.attempts - before + 1
        self.history.append(AttemptRecord(self.spec.name, outcome, number, self.fence, error))

    def _wait(self, step: Step, order: int, due: datetime | None = None, reason: str | None = None) -> None:
        self._go(step)
        self.order, self.due, self.wait_reason, self.waits_for = order, due, reason, None

    def _wait_for(self, following: Next, now: datetime, order: int) -> None:
        """Time, somebody who tells of an event, or children."""
        due = None if following.after is None else now + timedelta(seconds=following.after)
        if following.event is not None:
            self._wait(Step.HAND_OVER, order, due, "event")
            self.waits_for = f"event:{following.event}"
        elif following.batch is not None:
            self._wait(Step.HAND_OVER, order, due, "children")
            self.waits_for = f"children:{following.batch}"
        else:
            self._wait(Step.HAND_OVER, order, due, "after")

    def _phase_of_wait(self) -> str:
        """The phase that ended with the wait: since then the job may have been cancelled and replayed."""
        return next(one.phase for one in reversed(self.history) if one.outcome == "succeeded")

    def _next_place(self, following: Next | None) -> int:
        """Where it goes from this phase; behind the last one: it has ended."""
        if following is None or following.waits:
            return self.place + 1
        if following.finish:
            return len(self.workflow.phases)
        return [phase.spec.name for phase in self.workflow.phases].index(str(following.phase))

    def _end(self, step: Step) -> None:
        self._go(step)
        self.due = self.wait_reason = self.waits_for = None
        assert self.status in FINAL
        self.ended(self)

    def _go(self, step: Step) -> None:
        if (self.status, step) not in NEXT:
            raise Refused(f"job {self.id} is {self.status}: {step} is no step from there")
        self.status = NEXT[(self.status, step)]


def next_due(rows: Sequence[Row], paused: Mapping[str, datetime], now: datetime) -> Row | None:
    """Whose turn it is: the highest priority; then whatever its workflow puts first; then the oldest."""
    due = [row for row in rows if row.is_due(now) and paused.get(row.spec.queue, now) <= now]
    return min(due, key=_turn, default=None)


def _turn(row: Row) -> tuple[int, int, int]:
    return -row.priority, row.place if row.spec.start_first else -row.place, row.order
