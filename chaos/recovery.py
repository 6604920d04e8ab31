"""How long a killed worker's jobs waited for their next attempt."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from chaos.fault import Kill
from chaos.reconcile import Attempt


@dataclass(frozen=True)
class Recovery:
    """A job that a killed worker held, and the seconds from the kill to its next attempt."""

    job: UUID
    seconds: float


def recoveries(kills: Iterable[Kill], attempts: Sequence[Attempt], threads: int) -> list[Recovery]:
    """Every job that a victim held, as far as a thread was free elsewhere: otherwise it waits for its turn."""
    return [
        Recovery(cut.job, seconds)
        for kill in kills
        for cut in attempts
        if cut.worker == kill.worker and cut.outcome != "succeeded" and _ran(cut, kill.at)
        if (seconds := _until_next(cut, attempts, kill.at)) is not None
        if _had_room(kill, attempts, threads, seconds)
    ]


def _had_room(kill: Kill, attempts: Sequence[Attempt], threads: int, seconds: float) -> bool:
    """Whether a thread was free elsewhere from the kill to the next attempt."""
    until = kill.at + timedelta(seconds=seconds)
    starts = [a.started for a in attempts if a.worker in kill.others and a.started and kill.at < a.started < until]
    capacity = threads * len(kill.others)
    return all(busy(kill.others, attempts, moment) < capacity for moment in (kill.at, *starts))


def busy(workers: Iterable[str], attempts: Sequence[Attempt], moment: datetime) -> int:
    """Threads of these workers that ran a job at this moment."""
    chosen = set(workers)
    return sum(1 for attempt in attempts if attempt.worker in chosen and _ran(attempt, moment))


def percentiles(samples: Sequence[float]) -> dict[str, float | None]:
    """By nearest rank; None without samples."""
    ordered = sorted(samples)

    def rank(share: float) -> float | None:
        return round(ordered[max(math.ceil(share * len(ordered)), 1) - 1], 3) if ordered else None

    return {"p50": rank(0.5), "p99": rank(0.99), "max": rank(1.0)}


def _ran(attempt: Attempt, moment: datetime) -> bool:
    return bool(attempt.started and attempt.finished and attempt.started <= moment < attempt.finished)


def _until_next(cut: Attempt, attempts: Sequence[Attempt], moment: datetime) -> float | None:
    later = [a for a in attempts if a.job == cut.job and a.fence > cut.fence and a.started]
    following = min(later, key=lambda a: a.fence, default=None)
    return (following.started - moment).total_seconds() if following and following.started else None
