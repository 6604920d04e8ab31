"""How a worker process keeps its memory."""

from __future__ import annotations

import ctypes

# glibc gives each thread an arena of its own, up to eight a core: what one thread asks for and another gives back
# leaves holes in all of them. Under the interpreter's lock hardly two threads ever ask at once.
M_ARENA_MAX, ARENAS = -8, 2


def keep_together() -> None:
    """Tell glibc, before the threads start. Another C library is left as it is."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)
