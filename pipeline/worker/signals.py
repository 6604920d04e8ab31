"""How a worker process hears that it must stop."""

from __future__ import annotations

import ctypes
import signal
from time import monotonic
from typing import Any

# A service manager or a closing terminal signals the whole group, and Dramatiq's master forwards its own copy, of
# whatever kind. Dramatiq would take the second for impatience and die with its jobs in hand, which a deploy must not
# cost.
STOP = (signal.SIGTERM, signal.SIGHUP)
IMPATIENCE = 5.0


def survive_group_signals() -> None:
    """Treat signals to stop that come together as one, and stop when the master process dies."""
    first: list[float] = []

    def only_the_first(original: Any) -> Any:
        def handle(number: int, frame: Any) -> None:
            if not first or monotonic() - first[0] > IMPATIENCE:
                first[:] = [monotonic()]
                original(number, frame)

        return handle

    for number in STOP:
        original: Any = signal.getsignal(number)
        if callable(original):
            signal.signal(number, only_the_first(original))
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM, 0, 0, 0)
