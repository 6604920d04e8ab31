"""Beside the jobs of a process: the relay and, for the leader, the health check and the broker's bookkeeping."""

from __future__ import annotations

from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.broker.topology import dead_letter_queue
from pipeline.flow import sweeps
from pipeline.flow.message import compose, encode
from pipeline.flow.reconcile import Reconciler
from pipeline.flow.relay import Relay
from pipeline.settings import Settings


class Caretaker:
    """Owns the relay thread. Sweeps never wait behind the jobs they are to save."""

    def __init__(self, config: Settings, worker_no: int, worker_id: str, outbound: Outbound) -> None:
        self._config = config
        self._worker_id = worker_id
        self._outbound = outbound
        self._reconciler = Reconciler(config)
        self._report = sweeps.Report(config.health_seconds)
        self.relay = Relay(
            config.dsn, worker_no, outbound, backstop=config.backstop_seconds, health_every=config.health_seconds,
            patience=config.patience_seconds, check_health=self.check_health, check_broker=self.check_broker,
        )  # fmt: skip

    def start(self) -> None:
        self.relay.start()

    def stop(self) -> None:
        self.relay.stop()

    def check_health(self, connection: sweeps.Connection) -> bool:
        """Every 30 s: reclaim, look for queues that lost messages, clean up after the dead, report."""
        for one in sweeps.reclaim(connection, self._config.patience_seconds):
            if one.verdict == "poisoned":
                self._bury(connection, one)
        sweeps.remove_temp_folders(connection, self._config.temp_folder, [self._worker_id])
        connection.execute("SELECT pipeline_roll_up()")
        return self._report.say(connection) and self.check_broker(connection)

    def check_broker(self, connection: sweeps.Connection) -> bool:
        """Send again what RabbitMQ lost. True if a queue looks short: it is judged at the second look."""
        return self._reconciler.check(connection)

    def _bury(self, connection: sweeps.Connection, one: sweeps.Reclaimed) -> None:
        """A poison pill without a message at hand still gets its dead letter, to be found and revived there."""
        row = connection.execute(LETTER, (one.job_id,)).fetchone()
        if row is None:
            return
        actor, send, attempts, max_attempts, priority, body, trace_id, span_id, moment = row
        letter = compose(
            job_id=one.job_id, queue=one.queue, actor=actor, send=send, attempt=attempts + 1, max_attempts=max_attempts,
            sent_at=moment, body=body, trace_id=trace_id, span_id=span_id,
        )  # fmt: skip
        headers = {"x-pipeline-dead": "poisoned"}
        queue = dead_letter_queue(one.queue)
        self._outbound.publish(
            [Outgoing(queue, encode(letter), priority, one.job_id, send, moment, headers)], lambda failed: None
        )


LETTER = """SELECT ph.actor, j.send, j.attempts, j.max_attempts, j.priority, j.body, j.trace_id, j.span_id, now()
    FROM jobs j JOIN phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
    WHERE j.id = %s AND j.status = 'failed'"""
