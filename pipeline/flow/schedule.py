"""The periodiq schedule. Every sweep is harmless when it runs twice or late: a lock lets one through at a time."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import dramatiq
from periodiq import cron

from db.engine import connect
from pipeline import settings
from pipeline.broker.topology import SWEEPS
from pipeline.flow import sweeps
from pipeline.flow.install import broker
from pipeline.flow.process import stopping
from pipeline.flow.reclaim import Reclaimer
from pipeline.flow.reconcile import Reconciler
from pipeline.observe import logs

log = logs.get("pipeline.schedule")
ONE_AT_A_TIME = 7303


def _periodic(spec: str, number: int) -> Callable[[Callable[[sweeps.Connection], Any]], dramatiq.Actor[Any, Any]]:
    def declare(sweep: Callable[[sweeps.Connection], Any]) -> dramatiq.Actor[Any, Any]:
        def run() -> None:
            with connect(settings.get().dsn, f"sweep {sweep.__name__}") as connection:
                row = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (ONE_AT_A_TIME, number)).fetchone()
                if row is not None and row[0]:
                    log.info("sweep", name=sweep.__name__, did=str(sweep(connection)))

        return dramatiq.Actor(
            run,
            actor_name=f"pipeline.{sweep.__name__}",
            queue_name=SWEEPS,
            priority=0,
            broker=broker(),
            options={"periodic": cron(spec)},
        )

    return declare


@_periodic("* * * * *", 1)
def stale_recovery(connection: sweeps.Connection) -> int:
    """Every minute: running jobs whose worker is dead or silent go back to waiting."""
    return _look_twice(connection)


@_periodic("*/5 * * * *", 2)
def status_reset(connection: sweeps.Connection) -> int:
    """Every five minutes: the same for phases with a longer patience of their own, such as OCR (ten minutes)."""
    return _look_twice(connection)


def _look_twice(connection: sweeps.Connection) -> int:
    """The leader of maintenance does the same twice a minute; this finds what it does not."""
    config = settings.get()
    reclaimer = Reclaimer(config.patience_seconds, config.heartbeat_seconds)
    found = len(reclaimer.look(connection))
    for pause in (config.patience_seconds, 1.5 * config.heartbeat_seconds):
        if reclaimer.suspects() and not stopping.wait(pause):
            found += len(reclaimer.look(connection))
    return found


@_periodic("*/15 * * * *", 3)
def lost_messages(connection: sweeps.Connection) -> bool:
    """Every quarter of an hour: what RabbitMQ no longer has is sent again."""
    config = settings.get()
    reconciler = Reconciler(config)
    # Two looks, each of which hears every worker's next heartbeat; whoever leads the relay looks all the time.
    deadline = monotonic() + 4 * config.heartbeat_seconds + 4
    while (wants_more := reconciler.check(connection)) and monotonic() < deadline and not stopping.wait(1):
        pass
    return not wants_more


@_periodic("17 * * * *", 4)
def prune(connection: sweeps.Connection) -> int:
    """Every hour: finished jobs beyond their keeping are deleted, in small batches."""
    config = settings.get()
    return sweeps.prune(connection, config.keep_days, config.keep_failed_days)
