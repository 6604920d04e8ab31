"""Maintenance: what one process of all does beside the jobs. It needs PostgreSQL alone; sending has its own leader."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import psycopg
from psycopg.rows import TupleRow

from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.broker.topology import dead_letter_queue
from pipeline.journey.message import compose, encode
from pipeline.maintenance import sweeps
from pipeline.maintenance.reclaim import Reclaimed, Reclaimer
from pipeline.maintenance.temp_folders import TempFolders, database_id
from pipeline.observe import logs
from pipeline.settings import Settings
from pipeline.store.leader import LeaderLock, LeaderThread, told

log = logs.get("pipeline.maintenance")

Connection = psycopg.Connection[TupleRow]

# A batch whose row an application holds.
ASK_AGAIN = 0.5
MOST_LETTERS = 1000
LETTER = """SELECT ph.actor, j.send, j.attempts, j.max_attempts, j.priority, j.body, j.trace_id, j.span_id, now()
    FROM pipeline.jobs j JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
    WHERE j.id = %s AND j.status = 'failed'"""


class Maintenance:
    """Every process has one; the leader's works: it recovers jobs of dead workers, adds up batches, reports.

    Woken by time and by NOTIFY: 'dead' when a worker was seen to be gone, 'batch' when a child's end is to be counted.
    """

    def __init__(self, config: Settings, worker_no: int, outbound: Outbound) -> None:
        self._config = config
        self._outbound = outbound
        self._letters: list[Outgoing] = []
        self._statistics = sweeps.Report(config.health_seconds)
        self._leader = LeaderThread(config.dsn, "maintenance", "maintenance_leader", worker_no, lead=self._lead)

    def start(self) -> None:
        self._leader.start()

    def stop(self) -> None:
        self._leader.stop()

    def _lead(self, lock: LeaderLock, connection: Connection) -> None:
        connection.execute("LISTEN pipeline_maintenance")
        # A new one for each connection: right after an outage nobody can be told from the dead.
        reclaimer = Reclaimer(self._config.patience_seconds, self._config.heartbeat_seconds)
        due = 0.0
        while not self._leader.stopping:
            lock.check()
            self._reclaim(connection, reclaimer)
            held = bool(self._guarded(connection, self._finish_batches))
            if monotonic() >= due:
                due = monotonic() + self._config.health_seconds
                self._guarded(connection, self._report)
            pauses = [due - monotonic(), reclaimer.next_look(), ASK_AGAIN if held else self._config.health_seconds]
            if not told(connection):
                self._leader.waiter.wait(connection, min(pauses))
                told(connection)

    def _guarded(self, connection: Connection, part: Callable[[Connection], object]) -> object:
        """What goes wrong here keeps nobody from being recovered: that comes first, and goes on."""
        try:
            return part(connection)
        except Exception:
            if connection.closed or connection.broken:
                raise
            log.exception("a part of maintenance failed; it is tried again")
            return None

    def _finish_batches(self, connection: Connection) -> object:
        row = connection.execute("SELECT pipeline.finish_batches()").fetchone()
        return row[0] if row else None

    def _report(self, connection: Connection) -> None:
        TempFolders(self._config.temp_folder, database_id(connection)).sweep()
        connection.execute("SELECT pipeline.roll_up()")
        self._statistics.say(connection)

    def _reclaim(self, connection: Connection, reclaimer: Reclaimer) -> None:
        """A poison pill without a message at hand still gets its dead letter, to be found and revived there."""
        poisoned = [one for one in reclaimer.look(connection) if one.verdict == "poisoned"]
        letters = [letter for one in poisoned if (letter := _dead_letter(connection, one))]
        self._letters = (self._letters + letters)[-MOST_LETTERS:]
        if self._letters and self._outbound.ready.is_set():
            letters, self._letters = self._letters, []
            self._outbound.publish(letters, self._unburied)

    def _unburied(self, failed: list[Outgoing]) -> None:
        self._letters = self._letters + failed


def _dead_letter(connection: Connection, one: Reclaimed) -> Outgoing | None:
    row = connection.execute(LETTER, (one.job_id,)).fetchone()
    if row is None:
        return None
    actor, send, attempts, max_attempts, priority, body, trace_id, span_id, moment = row
    letter = compose(
        job_id=one.job_id,
        queue=one.queue,
        actor=actor,
        send=send,
        attempt=attempts + 1,
        max_attempts=max_attempts,
        sent_at=moment,
        body=body,
        trace_id=trace_id,
        span_id=span_id,
    )
    headers = {"x-pipeline-dead": "poisoned"}
    return Outgoing(dead_letter_queue(one.queue), encode(letter), priority, one.job_id, send, moment, headers)
