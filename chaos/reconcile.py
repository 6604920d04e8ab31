"""The books: what was submitted against what became of it. Pure, so that a test can cook them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from chaos.hooked import Hooked
from chaos.subject import CHILDREN, WORD

# How long after a worker's return others may still settle what they took from it.
SLACK = timedelta(seconds=5)
# A worker that is cut off for less than this has its lock back before anybody may call it dead.
CUT_OFF = timedelta(seconds=1)
TAKEN = ("crashed", "stale", "poisoned")
REFUNDED = "it came back: not charged"
# Of jobs that wait (chaos.workflow): the phase that spawns and writes nothing, and the one that sleeps, once.
SPAWNS, SLEEPS = "spawn", "rest"


@dataclass(frozen=True)
class JobRow:
    """A job as it stands at the end. ``phases``: its workflow's, if that is not the wave's."""

    id: UUID
    status: str
    fence: int
    phases: Sequence[str] | None = None


@dataclass(frozen=True)
class Effect:
    """A row of the ledger: a phase's database effect, and the attempt that wrote it."""

    job: UUID
    phase: str
    fence: int


@dataclass(frozen=True)
class StepCall:
    """A call of a step's function, or a result of one that was kept: by the attempt that made it."""

    job: UUID
    phase: str
    name: str
    fence: int


@dataclass(frozen=True)
class Waited:
    """A job that waited and has succeeded: for its children, of whose number it was told, and for a word.

    ``answered``: how many of its batches told it to continue. ``taken``: how many words ended a wait.
    """

    job: UUID
    answer: str | None
    told_of: int
    answered: int
    children: int
    taken: int


@dataclass(frozen=True)
class Scheduled:
    """A schedule: how many moments it has had, how many of them have a job, and how many jobs it has."""

    name: str
    due: int
    moments: int
    jobs: int


@dataclass(frozen=True)
class Attempt:
    """A row of the job's history."""

    job: UUID
    fence: int
    phase: str
    outcome: str
    worker: str | None = None
    started: datetime | None = None
    finished: datetime | None = None
    error: str | None = None


@dataclass(frozen=True)
class Absence:
    """A worker that could not be heard: killed, or frozen or cut off from PostgreSQL for a while.

    ``worker`` is its id, or the beginning of it.
    """

    kind: Literal["killed", "frozen", "cut off"]
    worker: str
    since: datetime
    until: datetime | None = None

    def explains(self, attempt: Attempt, lease: timedelta) -> bool:
        """Whether the attempt was rightly taken from this worker: a living one keeps what it has."""
        if attempt.worker is None or not attempt.worker.startswith(self.worker) or attempt.finished is None:
            return False
        if attempt.started is None or attempt.started > (self.until or self.since) + SLACK:
            return False
        if self.until is None:
            return attempt.finished >= self.since
        lasted = self.until - self.since
        long_enough = lasted >= (lease if self.kind == "frozen" or attempt.outcome == "stale" else CUT_OFF)
        return long_enough and self.since <= attempt.finished <= self.until + SLACK


@dataclass(frozen=True)
class Evidence:
    """Everything about the jobs of one wave. ``effects`` is None when the workflow keeps no ledger."""

    submitted: Sequence[UUID]
    phases: Sequence[str]
    jobs: Sequence[JobRow]
    attempts: Sequence[Attempt]
    effects: Sequence[Effect] | None
    called: Sequence[StepCall] = ()
    kept: Sequence[StepCall] = ()
    # Pairs of jobs that had one key of unique="open" at the same time.
    unique_twice: Sequence[tuple[UUID, UUID]] = ()
    # Jobs whose result somebody waits for in vain although they have ended.
    unanswered: Sequence[UUID] = ()
    waited: Sequence[Waited] = ()
    # Of these PostgreSQL said that they continue with the word.
    delivered: frozenset[UUID] = frozenset()
    hooked: Sequence[Hooked] = ()
    scheduled: Sequence[Scheduled] = ()
    # Jobs that began while as many of their key as may be were under way.
    crowded: Sequence[UUID] = ()
    outbox: int = 0
    messages: dict[str, int] = field(default_factory=dict)
    cancelled: Sequence[UUID] = ()
    # Those that fail because they were written to.
    failing: Sequence[UUID] = ()
    absences: Sequence[Absence] = ()
    lease: timedelta = timedelta(seconds=300)


@dataclass
class Findings:
    """What does not add up, a sentence each; ``about`` has the jobs concerned."""

    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    about: list[UUID] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lost or self.duplicated or self.unexplained)

    def note(self, kind: list[str], job: UUID, sentence: str) -> None:
        kind.append(f"job {job} {sentence}")
        self.about.append(job)


def reconcile(evidence: Evidence, explained: Iterable[str]) -> Findings:
    """``explained``: how an attempt may end under the faults of this wave, besides succeeding.

    A crash or a stale lease is explained only by the absence of the worker that made the attempt.
    """
    found = Findings()
    _states(evidence, found)
    _history(evidence, found, {"succeeded", *explained})
    if evidence.effects is not None:
        _effects(evidence, evidence.effects, found)
    _steps(evidence, found)
    _waits(evidence, found)
    _hooks(evidence, found)
    for one in evidence.scheduled:
        if one.moments < one.due:
            found.lost.append(f"schedule {one.name} has jobs for {one.moments} of its {one.due} moments")
        if one.jobs > one.moments or one.moments > one.due:
            found.duplicated.append(f"schedule {one.name} has {one.jobs} jobs for {one.due} moments")
    for job in evidence.crowded:
        found.note(found.duplicated, job, "began while as many jobs of its key as may be were under way")
    for first, second in evidence.unique_twice:
        found.note(found.duplicated, second, f"had its key while job {first} had it")
    for job in evidence.unanswered:
        found.note(found.lost, job, "has ended, and nobody told those who wait for its result")
    if evidence.outbox:
        found.unexplained.append(f"{evidence.outbox} rows of ended jobs are left in the outbox")
    for queue, count in sorted(evidence.messages.items()):
        if count:
            found.unexplained.append(f"{count} messages are left in queue {queue}")
    return found


def _states(evidence: Evidence, found: Findings) -> None:
    status = {job.id: job.status for job in evidence.jobs}
    meant = dict.fromkeys(evidence.cancelled, "cancelled") | dict.fromkeys(evidence.failing, "failed")
    for job in evidence.submitted:
        if job not in status:
            found.note(found.lost, job, "was submitted and is gone")
        elif status[job] != (wanted := meant.get(job, "succeeded")):
            found.note(found.lost, job, f"is {status[job]}" + ("" if wanted == "succeeded" else f", not {wanted}"))
    for job, n in Counter(evidence.submitted).items():
        if n > 1:
            found.note(found.unexplained, job, f"was given to {n} submits with keys of their own")


def _history(evidence: Evidence, found: Findings, fine: set[str]) -> None:
    fences: dict[UUID, list[int]] = defaultdict(list)
    successes: Counter[tuple[UUID, str]] = Counter()
    for attempt in evidence.attempts:
        fences[attempt.job].append(attempt.fence)
        successes[attempt.job, attempt.phase] += attempt.outcome == "succeeded"
        if not _is_fine(attempt, evidence, fine):
            said = f"{attempt.outcome} in {attempt.phase} under fence {attempt.fence}: {attempt.error}"
            found.note(found.unexplained, attempt.job, f"was {said}")
    for job in evidence.jobs:
        if job.status == "succeeded" and sorted(map(_claims, fences[job.id])) != list(range(1, _claims(job.fence) + 1)):
            found.note(found.unexplained, job.id, f"has fence {job.fence} and a history of {sorted(fences[job.id])}")
        for phase in job.phases or evidence.phases:
            if successes[job.id, phase] > 1:
                found.note(found.duplicated, job.id, f"succeeded {successes[job.id, phase]} times in {phase}")


def _claims(fence: int) -> int:
    """As pipeline.claims: what a failover adds is not one of them."""
    return fence & 0xFFFFFF


def _is_fine(attempt: Attempt, evidence: Evidence, fine: set[str]) -> bool:
    # A crash that was refunded is judged as one: a worker that was never away must not lose a job.
    if _slept(attempt):
        return True
    if attempt.outcome in TAKEN or (attempt.outcome == "released" and REFUNDED in (attempt.error or "")):
        return any(absence.explains(attempt, evidence.lease) for absence in evidence.absences)
    if attempt.outcome == "failed" and attempt.job in evidence.failing:
        return True
    return attempt.outcome in fine or (attempt.outcome == "cancelled" and attempt.job in evidence.cancelled)


def _effects(evidence: Evidence, effects: Sequence[Effect], found: Findings) -> None:
    written = Counter((effect.job, effect.phase) for effect in effects)
    for (job, phase), n in written.items():
        if n > 1:
            found.note(found.duplicated, job, f"wrote {n} rows in {phase}")
    for row in evidence.jobs:
        missing = [phase for phase in row.phases or evidence.phases if phase != SPAWNS and not written[row.id, phase]]
        if row.status == "succeeded" and missing:
            found.note(found.lost, row.id, f"succeeded without the effect of {', '.join(missing)}")
    winners = {(a.job, a.phase, a.fence) for a in evidence.attempts if a.outcome == "succeeded"}
    for effect in effects:
        if (effect.job, effect.phase, effect.fence) not in winners:
            found.note(
                found.unexplained,
                effect.job,
                f"has an effect in {effect.phase} of fence {effect.fence}, which did not succeed",
            )


def _steps(evidence: Evidence, found: Findings) -> None:
    """A step whose result was kept is never called again, and a call is made once an attempt."""
    kept = {(step.job, step.phase, step.name): step.fence for step in evidence.kept}
    for call, n in Counter(evidence.called).items():
        fence = kept.get((call.job, call.phase, call.name))
        if n > 1:
            found.note(found.duplicated, call.job, f"called step {call.name} {n} times in one attempt at {call.phase}")
        if fence is not None and call.fence > fence:
            said = f"called step {call.name} of {call.phase} under fence {call.fence}, after {fence} had kept it"
            found.note(found.duplicated, call.job, said)
    called = {(call.job, call.phase, call.name, call.fence) for call in evidence.called}
    for step in evidence.kept:
        if (step.job, step.phase, step.name, step.fence) not in called:
            found.note(found.unexplained, step.job, f"kept step {step.name} of {step.phase}, which nobody called")


def _slept(attempt: Attempt) -> bool:
    return attempt.phase == SLEEPS and attempt.outcome == "snoozed" and ": sleep" in (attempt.error or "")


def _waits(evidence: Evidence, found: Findings) -> None:
    """Each wait was ended once, by what the job was told; it slept once; its children exist once."""
    for one in evidence.waited:
        if not one.told_of == one.children == CHILDREN:
            said = f"has {one.children} children and was told of {one.told_of}; it spawned {CHILDREN}"
            found.note(found.duplicated if one.children > CHILDREN else found.lost, one.job, said)
        if one.answered != 1:
            found.note(found.duplicated, one.job, f"was told {one.answered} times that its children have ended")
        if one.taken != (one.answer == WORD):
            found.note(found.unexplained, one.job, f"continued with {one.answer!r}, and {one.taken} words were taken")
        if one.job in evidence.delivered and one.answer != WORD:
            found.note(found.lost, one.job, f"continued with {one.answer!r}, though a word was delivered to it")
    sleeps = Counter(attempt.job for attempt in evidence.attempts if _slept(attempt))
    for job, n in sleeps.items():
        if n > 1:
            found.note(found.duplicated, job, f"slept {n} times")
    for one in evidence.waited:
        if not sleeps[one.job]:
            found.note(found.lost, one.job, "succeeded without its sleep")


def _hooks(evidence: Evidence, found: Findings) -> None:
    refunded = {attempt.job for attempt in evidence.attempts if REFUNDED in (attempt.error or "")}
    for one in evidence.hooked:
        for kind, said in one.wrong(one.job in refunded):
            found.note(getattr(found, kind), one.job, said)
