"""Faults of the worker processes and of the relay in them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from functools import partial

from chaos.crew import Worker, lives, send
from chaos.fault import Hits, Kill, Scene, fault, now
from chaos.observer import Deadline, until

HELD = "SELECT count(*) FROM jobs WHERE status = 'running' AND locked_by = %s"
FREEZE_AT_MOST = 40.0


@fault("worker SIGKILL", explains=["crashed"], load="calm")
def kill_workers(scene: Scene) -> Hits:
    """One after another, whenever at least two work."""
    kills = []
    for _ in range(scene.times(8, 50)):
        workers = scene.stage.crew.at_least(scene.observer, 2)
        kills.append(_kill(scene.chance.choice(workers), workers))
        scene.pause(0.8, 2.0)
    return Hits(len(kills), "kills", kills)


@fault("relay leader SIGKILL", explains=["crashed"], load="calm")
def kill_leaders(scene: Scene) -> Hits:
    """The worker whose relay sends, so that another's must take over."""
    kills = []
    for _ in range(scene.times(2, 5)):
        workers = scene.stage.crew.at_least(scene.observer, 2)
        leader = until(lambda: scene.stage.crew.leader(scene.observer), 60, "a relay to lead")
        kills += [_kill(worker, workers) for worker in workers if worker.id == leader]
        scene.pause(1.5, 3.0)
    return Hits(len(kills), "kills", kills)


@fault("worker SIGSTOP past its lease, SIGCONT", explains=["stale", "crashed"])
def freeze_worker(scene: Scene) -> Hits:
    """Until others have its jobs; then it wakes and tries to complete them."""
    return _freeze(scene, leads=False)


@fault("relay leader SIGSTOP, SIGCONT", explains=["stale", "crashed"])
def freeze_leader(scene: Scene) -> Hits:
    """Nobody sends and nobody reclaims until it wakes."""
    return _freeze(scene, leads=True)


@fault("rolling deploy (SIGTERM, new process)", explains=["handed_back"])
def deploy(scene: Scene) -> Hits:
    """Each worker in turn is asked to stop, and its successor is waited for."""
    for worker in (workers := scene.stage.crew.at_least(scene.observer, scene.stage.crew.size)):
        send(worker.master, signal.SIGTERM)
        until(partial(_ended, worker.pid), 60, "a worker to stop")
        scene.stage.crew.at_least(scene.observer, scene.stage.crew.size)
    return Hits(len(workers), "restarts")


@fault("two relays more, one SIGKILLed")
def more_relays(scene: Scene) -> Hits:
    """Relays without workers, which wait to lead or lead."""
    command = [sys.executable, "-m", "pipeline.front.cli", "relay"]
    with ExitStack() as stack:
        relays = []
        for _ in range(2):
            relay = subprocess.Popen(command, env={**os.environ, **scene.stage.environment()},
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
            stack.callback(_end, relay)
            relays.append(relay)
        pids = [relay.pid for relay in relays]
        until(lambda: scene.observer.one("SELECT count(*) FROM workers WHERE pid = ANY (%s)", pids) == 2, 60, "relays")
        scene.pause(1, 3)
        relays[0].kill()
        scene.pause(2, 4)
    return Hits(2, "relays")


def _kill(victim: Worker, workers: list[Worker]) -> Kill:
    kill = Kill(victim.id, now(), frozenset(worker.id for worker in workers if worker.id != victim.id))
    send(victim.pid, signal.SIGKILL)
    return kill


def _freeze(scene: Scene, *, leads: bool) -> Hits:
    crew, observer = scene.stage.crew, scene.observer
    crew.at_least(observer, crew.size)

    def holder() -> Worker | None:
        leader = crew.leader(observer)
        fitting = [w for w in crew.living(observer) if (w.id == leader) is leads and observer.one(HELD, w.id)]
        return scene.chance.choice(fitting) if leader and fitting else None

    victim: Worker = until(holder, 60, "a worker with jobs")
    send(victim.pid, signal.SIGSTOP)
    held = observer.one(HELD, victim.id)
    try:
        until(lambda: not observer.one(HELD, victim.id), 10 if leads else FREEZE_AT_MOST, "its jobs to be taken")
    except Deadline:
        # A frozen leader keeps the relay for a minute; a frozen transaction keeps its row until it wakes.
        pass
    finally:
        send(victim.pid, signal.SIGCONT)
    return Hits(int(held), "jobs held")


def _ended(pid: int) -> bool:
    return not lives(pid)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
