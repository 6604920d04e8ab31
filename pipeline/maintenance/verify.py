"""PostgreSQL against RabbitMQ and against itself: what does not add up is found, repaired and reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import sleep

from pipeline.broker.counts import all_messages
from pipeline.declare.errors import BadInput
from pipeline.maintenance.passive import PassiveLooks
from pipeline.maintenance.reclaim import Reclaimer
from pipeline.observe import logs
from pipeline.settings import Settings
from pipeline.store.engine import Wire, connect
from pipeline.store.gateway import reconciliation, recovery

log = logs.get("pipeline.verify")

# A message is on its way for a moment, so that a queue is judged by two looks.
BETWEEN_LOOKS = 1.5
UNREPAIRED = {
    "phase that nobody declares has jobs",
    "schedule without jobs",
    "schedule that nobody moves on",
    "hook whose workflow nobody has registered",
}


@dataclass(frozen=True)
class Finding:
    """One thing that did not add up."""

    problem: str
    subject: str
    detail: str
    repaired: bool


def verify(config: Settings, *, repair: bool, pause: Callable[[float], None] = sleep) -> list[Finding]:
    """Everything that does not add up, repaired if ``repair``. A second run then finds nothing."""
    with connect(config.session_dsn, "verify") as connection:
        found = _dead_workers(connection, repair, pause)
        found += _books(connection, repair)
        found += _messages(connection, config, repair, pause)
    for one in found:
        log.warning("verify", **one.__dict__)
    return found


def _dead_workers(connection: Wire, repair: bool, pause: Callable[[float], None]) -> list[Finding]:
    """Two looks here too: a worker that has just lost its connection is back before the second."""
    reclaimer = Reclaimer(BETWEEN_LOOKS, BETWEEN_LOOKS)
    first = {orphan.job_id for orphan in recovery.run_under_a_dead_worker(connection)}
    if first and repair:
        reclaimer.look(connection)
    if first:
        pause(BETWEEN_LOOKS)
    orphans = [orphan for orphan in recovery.run_under_a_dead_worker(connection) if orphan.job_id in first]
    if repair and orphans:
        reclaimer.look(connection)
    return [Finding("runs under a dead worker", str(job), worker, repair) for job, worker in orphans]


def _books(connection: Wire, repair: bool) -> list[Finding]:
    found = recovery.verify(connection, repair=repair)
    return [Finding(*one, repaired=repair and one.problem not in UNREPAIRED) for one in found]


def _messages(connection: Wire, config: Settings, repair: bool, pause: Callable[[float], None]) -> list[Finding]:
    """Queues with fewer messages than jobs wait on. All are sent again: none stays lost, and a copy is void."""
    first = _short(connection, config, pause)
    if first:
        pause(BETWEEN_LOOKS)
    second = _short(connection, config, pause) if first else {}
    found = []
    for queue in sorted(first.keys() & second.keys()):
        sent, has, _ = second[queue]
        if repair:
            reconciliation.resend(connection, queue, first[queue][2], "verified")
        found.append(Finding("queue that lost messages", queue, f"{sent} sent, RabbitMQ has {has}", repair))
    return found


Shorts = dict[str, tuple[int, int, datetime]]


def _short(connection: Wire, config: Settings, pause: Callable[[float], None]) -> Shorts:
    """How many were sent, how many RabbitMQ has, and until when."""
    management, amqp = config.rabbitmq_management_url, config.rabbitmq_url.get_secret_value()
    if not reconciliation.expected_messages(connection, 0):
        return {}
    counts = all_messages(management.get_secret_value(), amqp) if management else None
    if counts is None:
        return _passively_short(connection, config, pause)
    return {
        one.queue: (one.queued, counts.get(one.queue, 0), one.newest)
        for one in reconciliation.expected_messages(connection, 0)
        if counts.get(one.queue, 0) < one.queued + one.running
    }


def _passively_short(connection: Wire, config: Settings, pause: Callable[[float], None]) -> Shorts:
    """Without the management API the workers say what they hold, with their next heartbeat."""
    looks = PassiveLooks(config)
    asked = looks.ask(connection)
    if asked is None:
        raise BadInput('RabbitMQ could not be asked what it has: run "pipeline doctor" for the reason')
    while (verdict := looks.judge(connection, asked)) is None:
        pause(0.5)
    return {queue: (short.sent, short.found, verdict.before) for queue, short in verdict.short.items()}
