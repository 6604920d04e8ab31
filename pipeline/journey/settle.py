"""The end of an attempt that did not succeed. Every way out carries the fence; zero rows mean that it lost its job."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from time import sleep
from typing import TYPE_CHECKING

from pipeline import settings
from pipeline.declare.errors import (
    Cancelled,
    Crashed,
    GiveUp,
    PipelineError,
    SnoozeFor,
    StaleClaim,
    classify,
    database_is_unable,
    http_status,
)
from pipeline.journey.checkpoint import Interrupted
from pipeline.journey.left_behind import recall
from pipeline.journey.rate_limits import pause_rate_limit
from pipeline.observe import lines, logs, tracebacks
from pipeline.observe.instruments import count
from pipeline.store.database import insist
from pipeline.store.gateway import rate_limits, settlement
from pipeline.store.gateway.settlement import Crash, Fail, Log, Release, Retry, Snooze, Transition, Verdict

if TYPE_CHECKING:
    from pipeline.declare.phase import PhaseSpec
    from pipeline.journey.attempt import Attempt
    from pipeline.worker.process import WorkerProcess

logger = logs.get("pipeline.worker")

LONGEST_SAID = 3900
# How often a worker's thread asks for a row that another transaction holds, before it leaves that to one that can wait.
TRIES = 3
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
DEAD_LETTERED = ("exhausted", "poisoned")
# Waits that pause a phase with a shared limit for every worker.
SHARED = ("retry_after", "rate_limit")
WAITS = ("snoozed", "released", "succeeded")
# How an attempt ends that others end: it was cancelled, or its worker looked dead.
TAKEN_AWAY = ("lost", "cancelled", "crashed", "stale")


def settle_error(worker: WorkerProcess, attempt: Attempt, error: BaseException) -> Verdict:
    """Failure: classify, then make the fenced transition, however long PostgreSQL takes. Returns the verdict.

    'locked' if another transaction holds the row for longer than a moment: nothing is done yet (see settle_for_good).
    """
    transition = _transition(attempt, error)
    if transition is None:
        if attempt.reason == "lost":
            # A heartbeat that met its commit before the answer came says so, too; nobody continues with the job then.
            recall(worker.no, attempt)
        return _discard(worker, attempt, error)
    pause, tries = FIRST_PAUSE, TRIES
    log = _log(attempt, error) if isinstance(transition, Retry | Fail | Crash) else None
    while (verdict := _make(transition, attempt, log)) == "locked" and (tries := tries - 1):
        sleep(pause)
        pause *= 2
    if verdict == "locked":
        return verdict
    if verdict in TAKEN_AWAY and not isinstance(error, Crashed):
        return _discard(worker, attempt, error)
    count(f"{attempt.spec.queue}.{verdict}")
    if verdict == "succeeded":
        # It had committed after all, and only the answer was lost, so that nobody continues with it.
        recall(worker.no, attempt)
    # A wait is nothing to worry about.
    say = worker.log.info if verdict in WAITS else worker.log.warning
    say(
        "attempt ended",
        job=str(attempt.job_id),
        phase=attempt.spec.queue,
        fence=attempt.fence,
        verdict=verdict,
        error=describe(error),
    )
    return verdict


def _discard(worker: WorkerProcess, attempt: Attempt, error: BaseException) -> Verdict:
    count("discarded")
    worker.log.warning("result discarded", job=str(attempt.job_id), fence=attempt.fence, reason=str(error))
    worker.liveness.lost(attempt)
    return "lost"


def _settled(worker: WorkerProcess, attempt: Attempt, error: BaseException) -> Verdict | None:
    """None while the row is locked, and after an error that nobody thought of: a job is never left without an end."""
    try:
        verdict = settle_error(worker, attempt, error)
    except Exception:
        worker.log.exception(
            "an attempt could not be settled; trying again", job=str(attempt.job_id), fence=attempt.fence
        )
        return None
    return None if verdict == "locked" else verdict


def settle_for_good(worker: WorkerProcess, attempt: Attempt, error: BaseException) -> None:
    """As ``settle_error``, until there is a verdict; then the message goes the same way. Not for a worker's thread."""
    while (verdict := _settled(worker, attempt, error)) is None:
        sleep(LONGEST_PAUSE)
    if verdict in DEAD_LETTERED:
        worker.inbound.reject(attempt.delivery)
    else:
        worker.inbound.ack([attempt.delivery])
    worker.held.remove(attempt)


def _make(transition: Transition, attempt: Attempt, log: Log | None) -> Verdict:
    return insist(lambda connection: settlement.settle(connection, attempt.job_id, attempt.fence, transition, log))


def _log(attempt: Attempt, error: BaseException) -> Log | None:
    """Why it failed, to be kept with it. Whatever goes wrong with that, the attempt is settled."""
    try:
        return Log(_traceback(attempt, error), lines.kept(attempt))
    except Exception:
        logger.exception("why an attempt failed could not be kept", job=str(attempt.job_id))
        return None


def _traceback(attempt: Attempt, error: BaseException) -> str | None:
    """Of a phase that ran in a child process, the child knows it."""
    if attempt.isolated or attempt.said.traceback is not None:
        return attempt.said.traceback
    # An attempt that was told to stop while it did nothing of the team's says nothing by where it was.
    place = tracebacks.place(error, team=isinstance(error, Interrupted))
    return tracebacks.formatted(error) if place else None


def _transition(attempt: Attempt, error: BaseException) -> Transition | None:
    """What the error makes of the job; None if the job is no longer the attempt's."""
    if isinstance(error, Interrupted):
        return _interrupted(attempt, error)
    scale = settings.get().backoff_scale
    transition = decide(error, attempt.spec, attempt.attempts, now=datetime.now(UTC), chance=_chance(), scale=scale)
    if attempt.spec.shared_limit and isinstance(transition, Snooze) and transition.reason in SHARED:
        seconds = transition.delay
        insist(lambda connection: rate_limits.pause_queue(connection, attempt.spec.queue, seconds))
    if (
        attempt.spec.limit
        and attempt.rate_limit
        and isinstance(transition, Snooze)
        and transition.reason == "retry_after"
    ):
        _pause_limit(attempt.rate_limit, transition)
    return transition


def _pause_limit(rate_limit: str, wait: Snooze) -> None:
    """One was told, all are. If PostgreSQL cannot just now, the next one is told by the other side itself."""
    try:
        pause_rate_limit(rate_limit, wait.delay, wait.reason)
    except Exception as error:
        if not database_is_unable(error):
            raise


def decide(
    error: BaseException, spec: PhaseSpec, failures: int, *, now: datetime, chance: float, scale: float = 1.0
) -> Transition | None:
    """What an error of a phase makes of its job, after so many ``failures``. None: nothing, the job is another's.

    ``chance`` in [0, 1) is for the backoff's jitter; ``scale`` multiplies the backoff.
    """
    if isinstance(error, Cancelled | StaleClaim):
        return None
    if isinstance(error, Crashed):
        return Crash(str(error))
    match classify(error, now):
        case SnoozeFor(seconds, reason, asked, step):
            return Snooze(reason, seconds, describe(error), asked=asked, step=step)
        case GiveUp():
            return Fail(describe(error))
        case _:
            return Retry(describe(error), spec.backoff.delay(failures + 1, chance) * scale)


def out_of_time(spec: PhaseSpec) -> str:
    """The error of an attempt that was ended by its time limit."""
    return f"the time limit of {spec.time_limit:g} s was exceeded"


def _interrupted(attempt: Attempt, error: Interrupted) -> Transition | None:
    if attempt.reason in ("shutdown", "blocked"):
        return Release()
    if attempt.reason == "time_limit":
        delay = attempt.spec.backoff.delay(attempt.attempts + 1, _chance())
        place = tracebacks.place(error, team=True)
        said = out_of_time(attempt.spec) + (f" ({place})" if place else "")
        return Retry(said, delay * settings.get().backoff_scale)
    return None


def _chance() -> float:
    return random.random()  # noqa: S311  jitter


def describe(error: BaseException) -> str:
    """One line for people: the kind of error, with the status of an HTTP answer, what it says, and where in the team's
    code it was raised. pipeline.cause makes the name of a failure's group of it."""
    if isinstance(error, PipelineError) and error.described is not None:
        return error.described
    cause = getattr(error, "orig", None) or error
    status = http_status(error)
    kind = type(cause).__name__ if status is None else f"{type(cause).__name__} {status}"
    said = str(cause).strip().split("\n")[0][:LONGEST_SAID]
    place = tracebacks.place(error)
    return tracebacks.storable(tracebacks.without_secrets(f"{kind}: {said}") + (f" ({place})" if place else ""))
