"""Counts of what happened in this process; the heartbeat carries them to PostgreSQL."""

from __future__ import annotations

from collections import Counter
from threading import Lock

_counts: Counter[str] = Counter()
_lock = Lock()


def count(name: str, n: int = 1) -> None:
    """Add to a counter, for example ``refused.already_running``."""
    with _lock:
        _counts[name] += n


def snapshot() -> dict[str, int]:
    """All counts of this process since it started."""
    with _lock:
        return dict(_counts)
