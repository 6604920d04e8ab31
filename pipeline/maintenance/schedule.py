"""The periodiq schedule. Every sweep is harmless when it runs twice or late: a lock lets one through at a time."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from periodiq import cron

from pipeline import settings
from pipeline.broker.broker import EngineActor, PipelineBroker
from pipeline.broker.topology import SWEEPS
from pipeline.maintenance import sweeps
from pipeline.maintenance.reclaim import Reclaimer
from pipeline.maintenance.reconcile import Reconciler
from pipeline.observe import logs
from pipeline.store.engine import Wire, connect
from pipeline.store.gateway import upkeep

log = logs.get("pipeline.schedule")


Sweep = Callable[[Wire], Any]


def declare(broker: PipelineBroker) -> None:
    """An actor for each sweep; periodiq sends them in time."""
    for number, (spec, sweep) in enumerate(SCHEDULE, 1):
        EngineActor(
            _alone(sweep, number),
            actor_name=f"pipeline.{sweep.__name__}",
            queue_name=SWEEPS,
            priority=0,
            broker=broker,
            options={"periodic": cron(spec)},
        )


def _alone(sweep: Sweep, number: int) -> Callable[[], None]:
    def run() -> None:
        with connect(settings.get().session_dsn, f"sweep {sweep.__name__}") as connection:
            if upkeep.take_sweep_lock(connection, number):
                log.info("sweep", name=sweep.__name__, did=str(sweep(connection)))

    return run


def stale_recovery(connection: Wire) -> int:
    """Every minute: running jobs whose worker is dead or silent go back to waiting."""
    return _look_twice(connection)


def status_reset(connection: Wire) -> int:
    """Every five minutes: the same for phases with a longer patience of their own."""
    return _look_twice(connection)


def _look_twice(connection: Wire) -> int:
    """The leader of maintenance does the same twice a minute; this finds what it does not."""
    config = settings.get()
    reclaimer = Reclaimer(config.patience_seconds, config.heartbeat_seconds)
    found = len(reclaimer.look(connection))
    for pause in (config.patience_seconds, 1.5 * config.heartbeat_seconds):
        if reclaimer.suspects() and not sweeps.stopping.wait(pause):
            found += len(reclaimer.look(connection))
    return found


def lost_messages(connection: Wire) -> bool:
    """Every quarter of an hour: what RabbitMQ no longer has is sent again."""
    config = settings.get()
    reconciler = Reconciler(config)
    # Two looks, each of which hears every worker's next heartbeat; whoever leads the relay looks all the time.
    deadline = monotonic() + 4 * config.heartbeat_seconds + 4
    while (wants_more := reconciler.check(connection)) and monotonic() < deadline and not sweeps.stopping.wait(1):
        pass
    return not wants_more


def prune(connection: Wire) -> int:
    """Every hour: finished jobs beyond their keeping are deleted, in small batches, and old entries of the audit."""
    config = settings.get()
    sweeps.prune_audit(connection, config.keep_audit_days)
    return sweeps.prune(connection, config.keep_days, config.keep_failed_days)


SCHEDULE: list[tuple[str, Sweep]] = [
    ("* * * * *", stale_recovery),
    ("*/5 * * * *", status_reset),
    ("*/15 * * * *", lost_messages),
    ("17 * * * *", prune),
]
