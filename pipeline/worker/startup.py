"""What a worker settles with its host: how it keeps its memory, is told to stop, and ends if it cannot start."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import psycopg
from sqlalchemy.exc import DBAPIError

from pipeline.declare.errors import BadInput
from pipeline.observe import logs

log = logs.get("pipeline.worker")

EXIT_CODE = 3
DATABASE = (
    'check DATABASE_URL and the rights of its role; if this code is newer than the database, run "pipeline migrate"'
)
ANYTHING = "the traceback in the log names the place; correct the cause and start the worker again"


@contextmanager
def whole_or_not_at_all() -> Iterator[None]:
    """End the process, with a message, if the boot in this block fails. Dramatiq would log the error and go on: such a
    worker looks alive, takes no job, and nobody starts it again."""
    try:
        yield
    except BadInput as error:
        reason = str(error)
    except Exception as error:
        log.exception("this worker cannot start")
        reason = _reason(error)
    else:
        return
    sys.stderr.write(f"pipeline: {reason}\n")
    raise SystemExit(EXIT_CODE)


def _reason(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    # PostgreSQL's further lines quote the statement.
    said = ": ".join([type(cause).__name__, *str(cause).strip().splitlines()[:1]])
    return f"this worker cannot start: {said}\n  {DATABASE if isinstance(cause, psycopg.Error) else ANYTHING}"


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
