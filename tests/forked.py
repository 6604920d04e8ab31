"""Workers that are forked from a process that has other people's packages imported (see ``tests/forking.py``)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.dev.supervise import Program, Supervisor
from pipeline.testing.servers.workers import Workers, worker_command
from tests.forking import forks

if TYPE_CHECKING:
    from tests.place import Place


def fork_worker(
    workers: Workers, folder: Path, environment: Mapping[str, str], **options: Any
) -> subprocess.Popen[bytes]:
    """As ``workers.start``, without an interpreter of its own."""
    log = folder / f"worker-{workers.count}.log"
    with log.open("wb") as out:
        _, _, module, *arguments = worker_command(**options)
        process = forks().start(module, arguments, environment, out=out, err=out)
    workers.adopt(process, log)
    return process


def supervised(place: Place, count: int, *, threads: int, grace: float = 1, **settings: str) -> Supervisor:
    """So many, each of one process, and started again whenever they die."""
    command = worker_command(threads=threads, processes=1)
    environment = {**place.environment(), **settings}
    programs = [
        Program(f"worker-{n}", command, environment, grace, place.folder / f"supervised-{n}.log") for n in range(count)
    ]
    return Supervisor(programs, say=lambda text: None, start=_fork)


def _fork(program: Program) -> subprocess.Popen[bytes]:
    assert program.log is not None
    with program.log.open("ab") as log:
        _, _, module, *arguments = program.command
        return forks().start(module, arguments, {**os.environ, **program.environment}, out=log, err=log)
