"""RabbitMQ cuts off a consumer that holds a message for too long."""

from __future__ import annotations

from chaos.fault import Hits, Scene, fault
from chaos.faults_rabbitmq import close_all, control, no_control
from chaos.observer import until
from chaos.work import UNFINISHED, long_jobs
from pipeline.dev.services.rabbitmq_node import installed_version

TIMEOUT = 60
TICK = 5
USUAL_TIMEOUT, USUAL_TICK = 1800, 60
CLOSED = "closed the channel"


def no_timeout() -> str | None:
    """Why there is none, or nothing."""
    without = tuple(map(int, installed_version().split(".")[:2])) >= (4, 3)
    return "RabbitMQ 4.3 has no consumer timeout for classic queues" if without else no_control()


@fault(f"RabbitMQ consumer_timeout of {TIMEOUT} s, a phase longer than it", impossible=no_timeout)
def time_out(scene: Scene) -> Hits:
    """The phase goes on, its message comes back to somebody who leaves it to its holder, and it is done once."""
    if not scene.stage.subject.has_ledger:
        return Hits(0, "channels closed: no phase of this workflow can be told to take a minute")
    before = _closed(scene)
    _set(scene, TIMEOUT, TICK)
    try:
        jobs = long_jobs(scene, 2, TIMEOUT + 2.0 * TICK + 5)
        until(lambda: not scene.observer.one(UNFINISHED, jobs), 4 * TIMEOUT, "the long phases to end", pause=0.5)
    finally:
        _set(scene, USUAL_TIMEOUT, USUAL_TICK)
    return Hits(_closed(scene) - before, "channels closed", jobs=jobs)


def _set(scene: Scene, timeout: int, tick: int) -> None:
    """A channel keeps the timeout it was opened with: all are closed, and come back with the new one."""
    with scene.stage.rabbitmq_lock:
        control(
            scene,
            [
                "eval",
                f"application:set_env(rabbit, consumer_timeout, {timeout * 1000}), "
                f"application:set_env(rabbit, channel_tick_interval, {tick * 1000}).",
            ],
        )
    close_all(scene)


def _closed(scene: Scene) -> int:
    return len(scene.stage.crew.lines_about(CLOSED, most=1_000_000))
