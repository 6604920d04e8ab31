"""What a worker process settles with its host before it begins: how it keeps its memory, and how it is told to stop."""

from __future__ import annotations

import ctypes
import signal
from time import monotonic
from typing import Any

# glibc gives each thread an arena of its own, up to eight a core: what one thread asks for and another gives back
# leaves holes in all of them. Under the interpreter's lock hardly two threads ever ask at once.
M_ARENA_MAX, ARENAS = -8, 2


def keep_together() -> None:
    """Tell glibc, before the threads start. Another C library is left as it is."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)


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
