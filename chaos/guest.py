"""A worker that a fault starts beside the crew, for the time of the fault."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg

from chaos.crew import COMMAND
from chaos.fault import Scene
from chaos.observer import Observer, until

NAME = "chaos-guest"
LIVES = """SELECT count(*) FROM pipeline.workers WHERE id LIKE %s AND stopped_at IS NULL AND pipeline.alive(id)
    AND started_at < now() - interval '1 second'"""


@contextmanager
def guest(
    scene: Scene,
    extra: Mapping[str, str],
    *,
    name: str = NAME,
    before: Sequence[str] = (),
    observer: Observer | None = None,
) -> Iterator[int]:
    """Yields its process group when it works; asks it to stop at the end, and waits until it is gone.

    ``before``: a program that starts it. ``observer``: eyes on its database, if that is another one.
    """
    environment = {**os.environ, **scene.stage.environment(), "WORKER_ID": name, **extra}
    with scene.stage.crew.guest_log.open("ab") as log:
        worker = subprocess.Popen([*before, *COMMAND], env=environment, stdout=log, stderr=log, start_new_session=True)
    look = observer or scene.observer
    try:
        until(lambda: _works(look, name), 60, f"the worker {name} to work", pause=0.2)
        yield worker.pid
    finally:
        _dismiss(worker)


def _works(look: Observer, name: str) -> bool:
    try:
        return bool(look.one(LIVES, f"{name}-%"))
    except psycopg.ProgrammingError:  # its database has no tables yet
        return False


def _dismiss(worker: subprocess.Popen[bytes]) -> None:
    """What started it may stand above it, and would die alone."""
    try:
        _signal(worker.pid, signal.SIGTERM)
        worker.wait(60)
        until(lambda: not _signal(worker.pid, 0), 60, "the guest to leave")
    finally:
        _signal(worker.pid, signal.SIGKILL)
        worker.wait()


def _signal(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
