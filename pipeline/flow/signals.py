"""How a worker process hears that it must stop."""

from __future__ import annotations

import ctypes
import signal
from time import monotonic
from typing import Any

# A service manager signals the whole group and Dramatiq's master forwards its own copy; Dramatiq would take
# the second for impatience and die with its jobs in hand, which a deploy must not cost.
IMPATIENCE = 5.0


def survive_group_signals() -> None:
    """Treat SIGTERMs that come together as one, and stop when the master process dies."""
    original: Any = signal.getsignal(signal.SIGTERM)
    if not callable(original):
        return
    first: list[float] = []

    def once(number: int, frame: Any) -> None:
        if not first or monotonic() - first[0] > IMPATIENCE:
            first[:] = [monotonic()]
            original(number, frame)

    signal.signal(signal.SIGTERM, once)
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM, 0, 0, 0)
