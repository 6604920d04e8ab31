"""Faults of the scheduler and of the API."""

from __future__ import annotations

from chaos.caller import Caller
from chaos.fault import Hits, Scene, fault
from chaos.kept import API, SCHEDULER, kept
from chaos.observer import Deadline, until
from pipeline.dev.services.ports import free_port

SWEEP = "stale_recovery"
# The scheduler knows minutes only; a minute and a start are the longest it may keep a sweep waiting.
A_MINUTE, BACK = 75.0, 30.0


def _sweeps(scene: Scene) -> int:
    """How often the workers ran what the scheduler sends every minute."""
    return sum("failed" not in line for line in scene.stage.crew.lines_about(SWEEP, most=1_000_000))


def _another_sweep(scene: Scene, done: Hits) -> None:
    """The scheduler works: a sweep that was sent from now on runs."""
    before = _sweeps(scene)
    try:
        until(lambda: _sweeps(scene) > before, A_MINUTE, "the next sweep", pause=0.5)
    except Deadline as late:
        done.complaints.append(f"{late}: the scheduler sends nothing any more")


@fault("scheduler SIGKILL, restart")
def kill_scheduler(scene: Scene) -> Hits:
    """It sends at its start, too: whatever was missed is made up for."""
    done = Hits(unit="kills")
    with kept(scene.stage, "scheduler", SCHEDULER) as [scheduler]:
        _another_sweep(scene, done)
        for _ in range(2):
            scheduler.kill()
            done.hits += 1
            _another_sweep(scene, done)
    return done


@fault("scheduler SIGSTOP, SIGCONT")
def freeze_scheduler(scene: Scene) -> Hits:
    """It misses its moments and goes on with the next one."""
    done = Hits(1, "freeze")
    with kept(scene.stage, "scheduler", SCHEDULER) as [scheduler]:
        _another_sweep(scene, done)
        with scheduler.frozen():
            scene.pause(4, 10)
        _another_sweep(scene, done)
    return done


@fault("two schedulers")
def two_schedulers(scene: Scene) -> Hits:
    """Every sweep is sent twice; a lock lets one through at a time."""
    done = Hits(2, "schedulers")
    with kept(scene.stage, "scheduler", SCHEDULER, n=2):
        _another_sweep(scene, done)
        scene.pause(3, 6)
    return done


@fault("API SIGKILL, restart")
def kill_api(scene: Scene) -> Hits:
    """A client goes on asking; what it was not told it asks again under the same key."""
    done, port = Hits(unit="kills"), free_port()
    with kept(scene.stage, "api", [*API, str(port)]) as [api], Caller(scene, port) as caller:
        caller.answered(BACK)
        for _ in range(scene.times(2, 4)):
            scene.pause(0.5, 1.5)
            api.kill()
            done.hits += 1
            _answers_again(caller, done)
    return _with_books(done, caller)


@fault("API SIGSTOP, SIGCONT")
def freeze_api(scene: Scene) -> Hits:
    """The client's requests time out, and may or may not have been taken."""
    done, port = Hits(unit="freezes"), free_port()
    with kept(scene.stage, "api", [*API, str(port)]) as [api], Caller(scene, port) as caller:
        caller.answered(BACK)
        for _ in range(2):
            scene.pause(0.5, 1.5)
            with api.frozen():
                scene.pause(3, 6)
            done.hits += 1
            _answers_again(caller, done)
    return _with_books(done, caller)


def _answers_again(caller: Caller, done: Hits) -> None:
    try:
        caller.answered(BACK)
    except Deadline as late:
        done.complaints.append(f"{late} after {done.hits} {done.unit}")


def _with_books(done: Hits, caller: Caller) -> Hits:
    done.jobs += caller.jobs
    done.complaints += caller.refused
    done.unit += f" ({len(caller.jobs)} requests taken, {caller.silent} without an answer)"
    return done
