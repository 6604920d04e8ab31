"""Faults of the worker processes and of the relay in them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

from chaos.crew import Worker, lives, send
from chaos.fault import Hits, Kill, Scene, fault, now
from chaos.observer import Deadline, until
from chaos.reconcile import Absence
from chaos.times import HEALTH, HEARTBEAT, LEASE
from chaos.work import long_jobs

HELD = "SELECT count(*) FROM pipeline.jobs WHERE status = 'running' AND locked_by = %s"
# A frozen worker loses its jobs after a lease, at the next health check, which looks twice.
FREEZE_AT_MOST, FREEZE_LEADER = LEASE + 4 * HEALTH + HEARTBEAT, 10.0


@fault("worker SIGKILL", load="calm")
def kill_workers(scene: Scene) -> Hits:
    """One after another, each with jobs in hand, whenever all work: so that others have free threads."""
    kills = []
    for _ in range(scene.times(10, 50)):
        victim = _holder(scene, lambda worker, leader: True)
        kills.append(_kill(victim, scene.stage.crew.living(scene.observer)))
        scene.pause(0.5, 1.5)
    return Hits(len(kills), "kills", kills)


@fault("relay leader SIGKILL", load="calm")
def kill_leaders(scene: Scene) -> Hits:
    """The worker whose relay sends, so that another's must take over."""
    kills = []
    for _ in range(scene.times(2, 5)):
        victim = _holder(scene, lambda worker, leader: worker == leader)
        kills.append(_kill(victim, scene.stage.crew.living(scene.observer)))
        scene.pause(0.5, 1.5)
    return Hits(len(kills), "kills", kills)


@fault("worker SIGSTOP past its lease, SIGCONT")
def freeze_worker(scene: Scene) -> Hits:
    """Until others have its jobs; then it wakes and tries to complete them."""
    return _freeze(scene, leads=False)


@fault("relay leader SIGSTOP, SIGCONT")
def freeze_leader(scene: Scene) -> Hits:
    """Nobody sends and nobody reclaims until it wakes."""
    return _freeze(scene, leads=True)


@fault("rolling deploy (SIGTERM, new process)", explains=["released"])
def deploy(scene: Scene) -> Hits:
    """Each worker in turn is asked to stop, and its successor is waited for."""
    for worker in (workers := scene.stage.crew.at_least(scene.observer, scene.stage.crew.size)):
        send(worker.master, signal.SIGTERM)
        until(partial(_ended, worker.pid), 60, "a worker to stop")
        scene.stage.crew.at_least(scene.observer, scene.stage.crew.size)
    return Hits(len(workers), "restarts")


@fault("SIGHUP to a worker's process group", explains=["released"])
def hang_up(scene: Scene) -> Hits:
    """As a closed terminal or a log rotation does: a reload at most, with no job lost to it."""
    done = Hits(unit="signals", jobs=long_jobs(scene, 6, 8))
    for _ in range(scene.times(2, 4)):
        victim = _holder(scene, lambda worker, leader: True)
        os.killpg(os.getpgid(victim.pid), signal.SIGHUP)
        done.hits += 1
        scene.pause(3, 6)
        scene.stage.crew.at_least(scene.observer, scene.stage.crew.size)
    return done


@fault("two relays more, one SIGKILLed")
def more_relays(scene: Scene) -> Hits:
    """Relays without workers, which wait to lead or lead."""
    command = [sys.executable, "-m", "pipeline.front.cli.main", "relay"]
    with ExitStack() as stack:
        relays = []
        for _ in range(2):
            relay = subprocess.Popen(
                command,
                env={**os.environ, **scene.stage.environment()},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(_end, relay)
            relays.append(relay)
        pids = [relay.pid for relay in relays]
        until(
            lambda: scene.observer.one("SELECT count(*) FROM pipeline.workers WHERE pid = ANY (%s)", pids) == 2,
            60,
            "relays",
        )
        scene.pause(1, 3)
        relays[0].kill()
        scene.pause(2, 4)
    return Hits(2, "relays")


def _holder(scene: Scene, fits: Callable[[str, str], bool]) -> Worker:
    """Wait until all workers work, and for one that fits (its id, the leader's), if possible one that holds jobs."""
    crew, observer = scene.stage.crew, scene.observer
    crew.at_least(observer, crew.size)

    def choose() -> list[Worker]:
        leader = crew.leader(observer)
        return [worker for worker in crew.living(observer) if leader and fits(worker.id, leader)]

    fitting: list[Worker] = until(choose, 60, "a worker that fits")
    with suppress(Deadline):  # the jobs of another's workflow may be too short to be caught
        fitting = until(lambda: [w for w in choose() if observer.one(HELD, w.id)], 5, "a worker with jobs")
    return scene.chance.choice(fitting)


def _kill(victim: Worker, workers: list[Worker]) -> Kill:
    kill = Kill(victim.id, now(), frozenset(worker.id for worker in workers if worker.id != victim.id))
    send(victim.pid, signal.SIGKILL)
    return kill


def _freeze(scene: Scene, *, leads: bool) -> Hits:
    observer, done = scene.observer, Hits(unit="jobs held")
    done.jobs = [] if leads else long_jobs(scene, 6, 8)
    victim = _holder(scene, lambda worker, leader: (worker == leader) is leads)
    since = now()
    send(victim.pid, signal.SIGSTOP)
    done.hits = observer.one(HELD, victim.id)
    seconds = FREEZE_LEADER if leads else FREEZE_AT_MOST
    try:
        until(lambda: not observer.one(HELD, victim.id), seconds, "others to take a frozen worker's jobs")
    except Deadline as late:
        # A frozen leader keeps the relay for a minute, by design.
        done.complaints += [] if leads else [f"{late}: {observer.one(HELD, victim.id)} of {done.hits} are left"]
    finally:
        send(victim.pid, signal.SIGCONT)
        done.absences.append(Absence("frozen", victim.id, since, now()))
    return done


def _ended(pid: int) -> bool:
    return not lives(pid)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
