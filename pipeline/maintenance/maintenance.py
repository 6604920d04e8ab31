"""Maintenance: what one process of all does beside the jobs. It needs PostgreSQL alone; sending has its own leader."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.broker.topology import dead_letter_queue
from pipeline.journey.message import compose, encode
from pipeline.maintenance import sweeps
from pipeline.maintenance.reclaim import Reclaimer
from pipeline.maintenance.schedules import Schedules
from pipeline.maintenance.temp_folders import TempFolders, database_id
from pipeline.observe import failpoints, logs
from pipeline.settings import Settings
from pipeline.store.engine import Wire
from pipeline.store.gateway import recovery, upkeep
from pipeline.store.gateway.recovery import Reclaimed
from pipeline.store.leader import LeaderLock, LeaderThread, told

log = logs.get("pipeline.maintenance")

Answer = TypeVar("Answer")

# A batch whose row an application holds; what failed.
ASK_AGAIN = 0.5
MOST_LETTERS = 1000


class Maintenance:
    """Every process has one; the leader's works: it recovers jobs of dead workers, adds up batches,
    ends expired jobs, submits the jobs of schedules, reports.

    Woken by time and by NOTIFY: 'dead' when a worker was seen to be gone, 'batch' when a child's end is to be counted,
    'expiry' when a job expires before the next look, 'schedule' when one was changed, 'bulk' when something is
    to be done with many jobs.
    """

    def __init__(self, config: Settings, worker_no: int, outbound: Outbound) -> None:
        self._config = config
        self._outbound = outbound
        self._letters: list[Outgoing] = []
        self._statistics = sweeps.Report(config.health_seconds)
        self._leader = LeaderThread(config.session_dsn, "maintenance", "maintenance_leader", worker_no, lead=self._lead)

    def start(self) -> None:
        self._leader.start()

    def stop(self) -> None:
        self._leader.stop()

    def _lead(self, lock: LeaderLock, connection: Wire) -> None:
        upkeep.listen(connection)
        # A new one for each connection: right after an outage nobody can be told from the dead.
        reclaimer = Reclaimer(self._config.patience_seconds, self._config.heartbeat_seconds)
        schedules = Schedules()
        due = 0.0
        while not self._leader.stopping:
            lock.check()
            self._reclaim(connection, reclaimer)
            held = self._guarded(connection, upkeep.finish_batches)
            looks = [self._guarded(connection, part) for part in self._parts(schedules)]
            if monotonic() >= due:
                due = monotonic() + self._config.health_seconds
                self._guarded(connection, self._report)
            pauses = [due - monotonic(), reclaimer.next_look(), ASK_AGAIN if held else self._config.health_seconds]
            pauses += [ASK_AGAIN if pause is None else pause for pause in looks]
            woken = told(connection)
            if not woken:
                self._leader.waiter.wait(connection, min(pauses))
                woken = told(connection)
            if woken and failpoints.armed:
                failpoints.reach("maintenance.woken")

    def _parts(self, schedules: Schedules) -> tuple[Callable[[Wire], float | None], ...]:
        """Each answers with the seconds until its next look."""
        return upkeep.expire, schedules.look, upkeep.step_bulk_actions

    def _guarded(self, connection: Wire, part: Callable[[Wire], Answer]) -> Answer | None:
        """A failure here is logged and does not stop recovery, which comes first."""
        try:
            return part(connection)
        except Exception:
            if connection.closed or connection.broken:
                raise
            log.exception("a part of maintenance failed; it is tried again")
            return None

    def _report(self, connection: Wire) -> None:
        TempFolders(self._config.temp_folder, database_id(connection)).sweep()
        upkeep.roll_up(connection)
        upkeep.count_ended(connection)
        self._statistics.say(connection)

    def _reclaim(self, connection: Wire, reclaimer: Reclaimer) -> None:
        """A poison pill without a message at hand still gets its dead letter, to be found and revived there."""
        poisoned = [one for one in reclaimer.look(connection) if one.verdict == "poisoned"]
        letters = [letter for one in poisoned if (letter := _dead_letter(connection, one))]
        self._letters = (self._letters + letters)[-MOST_LETTERS:]
        if self._letters and self._outbound.ready.is_set():
            letters, self._letters = self._letters, []
            self._outbound.publish(letters, self._unburied)

    def _unburied(self, failed: list[Outgoing]) -> None:
        self._letters = self._letters + failed


def _dead_letter(connection: Wire, one: Reclaimed) -> Outgoing | None:
    dead = recovery.dead_letter(connection, one.job_id)
    if dead is None:
        return None
    letter = compose(
        job_id=one.job_id,
        queue=one.queue,
        actor=dead.actor,
        send=dead.send,
        attempt=dead.attempts + 1,
        max_attempts=dead.max_attempts,
        sent_at=dead.now,
        priority=dead.priority,
        body=dead.body,
        trace_id=dead.trace_id,
        span_id=dead.span_id,
    )
    headers = {"x-pipeline-dead": "poisoned"}
    return Outgoing(
        dead_letter_queue(one.queue), encode(letter), dead.priority, one.job_id, dead.send, dead.now, headers
    )
