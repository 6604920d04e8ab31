"""Threads that a worker cannot live without: should one fail in a way nobody thought of, the process ends.

A worker that neither claims nor beats would look alive and do nothing. Dead, it is noticed at once: RabbitMQ
delivers its messages elsewhere, PostgreSQL drops its lock, and whoever supervises it starts another.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from pipeline.observe import logs

EXIT_CODE = 70

log = logs.get("pipeline.worker")


def essential_thread(name: str, run: Callable[[], None]) -> threading.Thread:
    """A daemon thread, not started yet, that takes the process with it if ``run`` raises."""
    return threading.Thread(target=_guarded, args=(name, run), name=name, daemon=True)


def _guarded(name: str, run: Callable[[], None]) -> None:
    try:
        run()
    except BaseException:
        log.exception("an essential thread failed; this worker ends, others take its jobs over", thread=name)
        os._exit(EXIT_CODE)
