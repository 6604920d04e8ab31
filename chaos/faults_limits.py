"""A worker that cannot open files or start threads for some seconds."""

from __future__ import annotations

import os
import resource
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

from chaos.crew import Worker
from chaos.fault import Hits, Scene, fault, now
from chaos.observer import Deadline, until
from chaos.reconcile import Absence
from chaos.routes import POSTGRES, RABBITMQ
from chaos.work import long_jobs

# Where the kernel counts threads: cgroups of version 1, or of version 2 where that controller is given to us.
PIDS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))


@fault("worker out of file descriptors", explains=["snoozed", "retried"], proxied=True)
def no_files(scene: Scene) -> Hits:
    """Its connections are lost meanwhile, and cannot be made again until it has descriptors."""
    victim, jobs = _unlucky(scene), long_jobs(scene, 6, 5)
    soft, hard = resource.prlimit(victim.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(victim.pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        done = _starve(scene, victim, jobs)
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(victim.pid, resource.RLIMIT_NOFILE, (soft, hard))
    return _expect_return(scene, done)


def no_pids() -> str | None:
    """Why threads cannot be counted here, or nothing."""
    return None if _controller() else "no cgroup of ours can count threads here"


@fault("worker out of threads", explains=["snoozed", "retried"], proxied=True, impossible=no_pids)
def no_threads(scene: Scene) -> Hits:
    """Nothing new can be started in it, and its connections are lost."""
    victim, jobs = _unlucky(scene), long_jobs(scene, 6, 5)
    with _counted(victim):
        done = _starve(scene, victim, jobs)
    return _expect_return(scene, done)


def _unlucky(scene: Scene) -> Worker:
    """The crew's last worker."""
    workers = scene.stage.crew.at_least(scene.observer, scene.stage.crew.size)
    return next(worker for worker in workers if worker.number == scene.stage.routes.unlucky)


def _starve(scene: Scene, victim: Worker, jobs: list[UUID]) -> Hits:
    """Cut its connections once, so that it needs new ones while it cannot have them."""
    done, routes, since = Hits(1, "worker", jobs=jobs), scene.stage.routes, now()
    for server in (POSTGRES, RABBITMQ):
        with routes.proxy(server, victim.number).behaving("cut"):
            pass
    scene.pause(4, 6)
    # Without descriptors it cannot have its lock back: others may take its jobs.
    done.absences.append(Absence("cut off", f"chaos-{victim.number}-", since, now()))
    return done


def _expect_return(scene: Scene, done: Hits) -> Hits:
    """Every worker consumes again, whether it lived on or gave way to a new one."""
    try:
        until(lambda: scene.stage.consumers() >= scene.stage.crew.size, 60, "all workers to consume again", pause=0.2)
    except Deadline as late:
        done.complaints.append(str(late))
    return done


def _controller() -> Path | None:
    if os.geteuid() != 0:
        return None
    for place in PIDS:
        listed = place / "cgroup.subtree_control"
        if place.name == "pids" and place.is_dir():
            return place
        if listed.exists() and "pids" in listed.read_text().split():
            return place
    return None


@contextmanager
def _counted(victim: Worker) -> Iterator[None]:
    """In a group of its own that has as many threads as it may; afterwards it is back where it was."""
    controller = _controller()
    assert controller is not None
    group = controller / f"chaos-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(victim.pid))
        (group / "pids.max").write_text((group / "pids.current").read_text())
        yield
    finally:
        (group / "pids.max").write_text("max")
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (controller / "cgroup.procs").write_text(pid)
        with suppress(OSError):
            group.rmdir()
