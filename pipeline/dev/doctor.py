"""Is everything as it should be? Each finding says how to fix it. Looks at the workflows that are declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import time

import pika
from pika.exceptions import AMQPError
from sqlalchemy.exc import OperationalError

from pipeline import settings
from pipeline.broker.counts import alarms, delivery_limits, server_version
from pipeline.broker.topology import arguments, dead_letter_queue
from pipeline.declare.errors import BadInput, what_was_said
from pipeline.declare.registry import workflows
from pipeline.dev.versions import supported
from pipeline.store import database
from pipeline.store.gateway import session
from pipeline.store.inspect import health
from pipeline.store.migrate import missing

# Seconds by which a relay that works is not late.
LATE = 60
# Seconds after which a transaction is called long.
LONG_SNAPSHOT = 1800
# People look at dead letters before they decide; nobody looks so often.
FEW_LOOKS, KEPT = 1000, 1_000_000
ALARMS = {
    "mem_alarm": "free memory there, or raise vm_memory_high_watermark; jobs wait in PostgreSQL meanwhile",
    "disk_free_alarm": "free disk space there, or lower disk_free_limit; jobs wait in PostgreSQL meanwhile",
}
NOBODY = "workers carry it: start some, and look at their log"


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    well: bool
    what: str
    cure: str = ""


def examine() -> list[Finding]:
    """Look at settings, PostgreSQL and RabbitMQ, in the order in which they depend on one another."""
    try:
        config = settings.get()
    except BadInput as error:
        return [Finding(False, str(error), "set them, or run: pipeline services start")]
    found = [Finding(True, "settings are complete"), *_postgres()]
    # What is not there cannot be looked into.
    cluster = _cluster() if all(one.well for one in found) else []
    return [*found, *_rabbitmq(config), *cluster]


def _postgres() -> list[Finding]:
    try:
        with database.engine().connect() as connection:
            version, now = session.server(connection)
            durable = session.commits_durably(connection)
            standbys = session.standbys(connection)
    except OperationalError as error:
        return [Finding(False, f"PostgreSQL: {what_was_said(error.orig)}", "start it or correct DATABASE_URL")]
    problem = missing(database.engine())
    apart = abs(now - time())
    return [
        Finding(*supported("PostgreSQL", str(version // 10000))),
        Finding(durable, "PostgreSQL commits durably", "turn fsync and synchronous_commit on"),
        *_standbys(standbys),
        Finding(problem is None, problem or "the database is up to date", "run: pipeline migrate"),
        Finding(
            apart < 5,
            f"clocks differ by {apart:.1f} s",
            "synchronise this machine's clock (due times use PostgreSQL's)",
        ),
    ]


def _standbys(found: session.Standbys) -> Iterator[Finding]:
    if found.following and found.awaited:
        yield Finding(True, f"commits wait for a standby ({found.following} follow)")
    elif found.following:
        said = f"commits wait for none of the standbys ({found.following} follow): a failover loses the last of them"
        yield Finding(
            False, said, "set synchronous_standby_names and leave synchronous_commit on (docs/howto/failover.md)"
        )


def _cluster() -> list[Finding]:
    """Whether somebody works, sends and looks after the rest; and jobs that nobody would ever take up."""
    with database.engine().connect() as connection:
        now = health.health(connection)
        versions, forgotten = health.versions(connection), health.forgotten(connection)
        snapshots = health.snapshots(connection, LONG_SNAPSHOT)
    alive = sum(now.workers.get(state, 0) for state in ("alive", "not_consuming", "draining"))
    idle = now.workers.get("draining", 0)
    waited_for = {one.queue.partition(".")[0] for one in now.unserved}
    silent, gone = now.workers.get("not_consuming", 0), now.workers.get("missing", 0)
    return [
        Finding(alive > 0, f"{alive} workers are alive", "start some: dramatiq pipeline.actors --processes 4"),
        *([Finding(idle < alive, f"{idle} workers are draining", "pipeline drain WORKER --undo")] if idle else ()),
        Finding(silent == 0, f"{silent} workers do not consume all of their queues", "see: pipeline workers"),
        Finding(gone == 0, f"{gone} workers are missing", "maintenance takes their jobs back within a minute"),
        Finding(now.relay, _led("the relay", now.relay), NOBODY),
        Finding(now.relay_lag < LATE, f"the relay is {now.relay_lag:.0f} s late", "see the log of its worker"),
        Finding(now.maintenance, _led("maintenance", now.maintenance), NOBODY),
        Finding(
            now.unconfirmed < 2 * settings.get().heartbeat_seconds + LATE / 4,
            f"RabbitMQ has confirmed all but the last {now.unconfirmed:.0f} s",
            "it takes no messages while it has an alarm: free memory or disk there (rabbitmq-diagnostics alarms)",
        ),
        *(_unserved(one.queue, one.jobs) for one in now.unserved),
        *(
            Finding(False, f"{jobs} jobs are in {queue}, which nobody declares", f"pipeline move {queue} PHASE")
            for queue, jobs in now.undeclared
        ),
        *_versions(versions),
        *(_forgotten([name for name in forgotten if name not in waited_for]) if alive else ()),
        *(_snapshot(one) for one in snapshots),
    ]


def _versions(versions: dict[str, int]) -> Iterator[Finding]:
    """Two are well while a new one is rolled out, and not for longer."""
    named = ", ".join(f"{name or 'unknown'} ({n})" for name, n in versions.items())
    if len(versions) > 1:
        cure = "unless a deploy is under way, restart the workers of the older one: pipeline workers"
        yield Finding(False, f"{len(versions)} versions of the code run side by side: {named}", cure)
    elif versions:
        yield Finding(True, f"all workers run the same code: {named}")


def _forgotten(workflows: list[str]) -> Iterator[Finding]:
    """Perhaps on purpose: where jobs wait, that is a finding of its own."""
    if workflows:
        named = ", ".join(workflows[:10]) + (", …" if len(workflows) > 10 else "")
        cure = "is a module missing in PIPELINE_WORKFLOWS of the workers, or a queue among theirs (--queues)?"
        yield Finding(True, f"no worker that is alive serves {named}; no job waits there. {cure}")


def _snapshot(one: health.Snapshot) -> Finding:
    return Finding(
        False,
        f"session {one.pid} ({one.name}) has had a transaction open for {one.age / 60:.0f} min: vacuum waits for it",
        f"end that transaction, or the session: SELECT pg_terminate_backend({one.pid})",
    )


def _alarms(config: settings.Settings) -> Iterator[Finding]:
    """RabbitMQ takes no messages while one is on; only its management API tells."""
    url = config.rabbitmq_management_url
    for node, found in (alarms(url.get_secret_value()) if url else {}).items():
        for alarm in found:
            yield Finding(False, f"RabbitMQ's {node} takes no messages: {alarm.replace('_', ' ')}", ALARMS[alarm])


def _dropped_letters(config: settings.Settings) -> Iterator[Finding]:
    """Since RabbitMQ 4.0 a quorum queue drops what was given back twenty times, unless a policy says otherwise."""
    url = config.rabbitmq_management_url
    if url is None or config.queue_type != "quorum":
        return
    queues = [dead_letter_queue(phase.spec.queue) for workflow in workflows().values() for phase in workflow.phases]
    limits = delivery_limits(url.get_secret_value(), config.rabbitmq_url.get_secret_value(), queues)
    if low := [queue for queue, limit in limits.items() if limit < FEW_LOOKS]:
        yield Finding(
            False,
            f"RabbitMQ drops a dead letter of {', '.join(low[:3])}{', …' if len(low) > 3 else ''} that was looked at "
            f"{limits[low[0]]} times",
            f"rabbitmqctl set_policy --vhost VHOST dead-letters-kept '\\.XQ$' '{{\"delivery-limit\": {KEPT}}}'",
        )


def _led(what: str, led: bool) -> str:
    return f"{what} has a leader" if led else f"nobody leads {what}"


def _unserved(queue: str, jobs: int) -> Finding:
    return Finding(
        False,
        f"{jobs} jobs wait for {queue}, which no worker that is alive serves",
        "is its module in PIPELINE_WORKFLOWS of the workers, and its queue among theirs (--queues)?",
    )


def _rabbitmq(config: settings.Settings) -> list[Finding]:
    try:
        connection = pika.BlockingConnection(pika.URLParameters(config.rabbitmq_url.get_secret_value().split(";")[0]))
    except (AMQPError, OSError) as error:
        return [
            Finding(False, f"RabbitMQ does not answer ({type(error).__name__})", "start it or correct RABBITMQ_URL")
        ]
    found = [Finding(True, "RabbitMQ answers"), Finding(*supported("RabbitMQ", server_version(connection)))]
    for workflow in workflows().values():
        for actor in workflow.phases:
            queue = actor.spec.queue
            try:
                connection.channel().queue_declare(queue, durable=True, arguments=arguments(queue, config.queue_type))
            except AMQPError as error:
                found.append(
                    Finding(
                        False,
                        f"queue {queue}: {error}",
                        f"drain and delete {queue} in the management UI; workers declare it again",
                    )
                )
    connection.close()
    known = (
        "RabbitMQ's management API is known"
        if config.rabbitmq_management_url
        else "RABBITMQ_MANAGEMENT_URL is not set: not needed"
    )
    return [*found, Finding(True, known), *_alarms(config), *_dropped_letters(config)]
