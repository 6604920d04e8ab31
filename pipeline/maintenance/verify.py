"""PostgreSQL against RabbitMQ and against itself: what does not add up is found, repaired and reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import sleep

from pipeline.broker.counts import all_messages
from pipeline.declare.errors import BadInput
from pipeline.maintenance import sweeps
from pipeline.maintenance.passive import PassiveLooks
from pipeline.maintenance.reclaim import Reclaimer
from pipeline.observe import logs
from pipeline.settings import Settings
from pipeline.store.engine import connect

log = logs.get("pipeline.verify")

# A message is on its way for a moment, so that a queue is judged by two looks.
BETWEEN_LOOKS = 1.5
UNREPAIRED = "phase that nobody declares has jobs"
BOOKS = "SELECT queue, queued, newest, running FROM pipeline.expected_messages(0) WHERE queued > 0"
RESEND = """
    SELECT pipeline.unsend(array_agg(j.id), array_agg(j.send), 'verified')
    FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id JOIN pipeline.phases ph ON ph.id = o.phase_id
    WHERE ph.queue = %s AND o.sent_at <= %s AND pipeline.is_confirmed(o)"""
DEAD = """SELECT j.id, j.locked_by FROM pipeline.running_jobs j JOIN pipeline.workers w ON w.id = j.locked_by
    WHERE NOT pipeline.alive(w.id) ORDER BY j.id"""


@dataclass(frozen=True)
class Finding:
    """One thing that did not add up."""

    problem: str
    subject: str
    detail: str
    repaired: bool


def verify(config: Settings, *, repair: bool, pause: Callable[[float], None] = sleep) -> list[Finding]:
    """Everything that does not add up, repaired if ``repair``. A second run then finds nothing."""
    with connect(config.dsn, "verify") as connection:
        found = _dead_workers(connection, repair, pause)
        found += _books(connection, repair)
        found += _messages(connection, config, repair, pause)
    for one in found:
        log.warning("verify", **one.__dict__)
    return found


def _dead_workers(connection: sweeps.Connection, repair: bool, pause: Callable[[float], None]) -> list[Finding]:
    """Two looks here too: a worker that has just lost its connection is back before the second."""
    reclaimer = Reclaimer(BETWEEN_LOOKS, BETWEEN_LOOKS)
    first = {row[0] for row in connection.execute(DEAD)}
    if first and repair:
        reclaimer.look(connection)
    if first:
        pause(BETWEEN_LOOKS)
    rows = [row for row in connection.execute(DEAD) if row[0] in first]
    if repair and rows:
        reclaimer.look(connection)
    return [Finding("runs under a dead worker", str(job), str(worker), repair) for job, worker in rows]


def _books(connection: sweeps.Connection, repair: bool) -> list[Finding]:
    rows = connection.execute("SELECT problem, subject, detail FROM pipeline.verify(%s)", (repair,)).fetchall()
    return [Finding(problem, subject, detail, repair and problem != UNREPAIRED) for problem, subject, detail in rows]


def _messages(
    connection: sweeps.Connection, config: Settings, repair: bool, pause: Callable[[float], None]
) -> list[Finding]:
    """Queues with fewer messages than jobs wait on. All are sent again: none stays lost, and a copy is void."""
    first = _short(connection, config, pause)
    if first:
        pause(BETWEEN_LOOKS)
    second = _short(connection, config, pause) if first else {}
    found = []
    for queue in sorted(first.keys() & second.keys()):
        sent, has, _ = second[queue]
        if repair:
            connection.execute(RESEND, (queue, first[queue][2]))
        found.append(Finding("queue that lost messages", queue, f"{sent} sent, RabbitMQ has {has}", repair))
    return found


Shorts = dict[str, tuple[int, int, datetime]]


def _short(connection: sweeps.Connection, config: Settings, pause: Callable[[float], None]) -> Shorts:
    """How many were sent, how many RabbitMQ has, and until when."""
    management, amqp = config.rabbitmq_management_url, config.rabbitmq_url.get_secret_value()
    if not connection.execute(BOOKS).fetchall():
        return {}
    counts = all_messages(management.get_secret_value(), amqp) if management else None
    if counts is None:
        return _passively_short(connection, config, pause)
    return {
        queue: (sent, counts.get(queue, 0), newest)
        for queue, sent, newest, running in connection.execute(BOOKS).fetchall()
        if counts.get(queue, 0) < sent + running
    }


def _passively_short(connection: sweeps.Connection, config: Settings, pause: Callable[[float], None]) -> Shorts:
    """Without the management API the workers say what they hold, with their next heartbeat."""
    looks = PassiveLooks(config)
    asked = looks.ask(connection)
    if asked is None:
        raise BadInput('RabbitMQ could not be asked what it has: run "pipeline doctor" for the reason')
    while (verdict := looks.judge(connection, asked)) is None:
        pause(0.5)
    return {queue: (short.sent, short.found, verdict.before) for queue, short in verdict.short.items()}
