"""Durations as counters: a worker adds one to a bucket's name, and the buckets of all workers add up by themselves.

Names: ``duration.<queue>.<upper bound in seconds>`` (the last bound is ``inf``) and ``duration.<queue>.ms``, the sum.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from pipeline.observe.counters import count

BOUNDS = ("0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60", "300", "inf")
_LIMITS = [float(bound) for bound in BOUNDS]
OUTCOMES = frozenset(
    {
        "succeeded",
        "retried",
        "exhausted",
        "failed",
        "snoozed",
        "released",
        "crashed",
        "stale",
        "poisoned",
        "cancelled",
        "undeliverable",
        "lost",
    }
)


def observe_duration(queue: str, seconds: float) -> None:
    """Count one execution of a phase."""
    bound = BOUNDS[bisect_left(_LIMITS, seconds)]
    count(f"duration.{queue}.{bound}")
    count(f"duration.{queue}.ms", round(seconds * 1000))


def outcomes(counters: dict[str, int], queues: list[str]) -> Iterator[tuple[str, str, str, int]]:
    """Counters named ``<queue>.<outcome>``: (name, queue, outcome, count)."""
    known = set(queues)
    for name, n in counters.items():
        queue, _, outcome = name.rpartition(".")
        if queue in known and outcome in OUTCOMES:
            yield name, queue, outcome, n
