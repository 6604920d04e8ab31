"""What a job waits for, its parent, its children, and the events that it was told of: for every door."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

WAITING = text("""SELECT split_part(waits_for, ':', 1) AS reason,
    CASE WHEN due_at < 'infinity' THEN due_at END AS until,
    CASE WHEN waits_for LIKE 'event:%' THEN substr(waits_for, 7) END AS event,
    CASE WHEN waits_for LIKE 'children:%' THEN substr(waits_for, 10)::uuid END AS batch
    FROM pipeline.outbox WHERE job_id = :id AND waits_for IS NOT NULL AND due_at > now()""")
# Of a job that has not ended: living workers, those of them that take messages of its phase, and whether RabbitMQ has
# left its message unconfirmed through two heartbeats of its sender.
HANDS = text("""SELECT ph.queue, w.alive, w.serving,
        coalesce(o.sent_at < now() - make_interval(secs => :late) AND NOT pipeline.is_confirmed(o), false) AS refused
    FROM pipeline.jobs j JOIN pipeline.outbox o ON o.job_id = j.id
    JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase CROSS JOIN LATERAL (
        SELECT count(*) AS alive, count(*) FILTER (WHERE ph.queue = ANY (w.queues)) AS serving
        FROM pipeline.workers w WHERE w.stopped_at IS NULL AND pipeline.alive(w.id)) w
    WHERE j.id = :id AND j.status = 'pending'""")
# By whose end the event becomes the result: that of the phase that ended with the wait.
WAITING_PHASE = text("""SELECT j.workflow, (
        SELECT t.phase FROM pipeline.attempts t WHERE t.job_id = j.id AND t.fence <= j.fence
        ORDER BY t.fence DESC LIMIT 1) AS phase
    FROM pipeline.jobs j JOIN pipeline.outbox o ON o.job_id = j.id
    WHERE j.id = :id AND o.waits_for = 'event:' || CAST(:event AS text) AND o.due_at > now()""")
PARENT = text("""SELECT p.id, p.workflow, p.phase, p.status
    FROM pipeline.jobs j JOIN pipeline.batches b ON b.id = j.batch_id JOIN pipeline.jobs p ON p.id = b.parent_job
    WHERE j.id = :id""")
# Those that failed are looked for among the first ten thousand.
CHILDREN = text("""SELECT b.id AS batch, b.policy, b.total, b.total - b.remaining AS ended, b.failed,
    b.answered_at IS NOT NULL AS answered, b.created_at,
    (SELECT j.workflow FROM pipeline.jobs j WHERE j.batch_id = b.id ORDER BY j.id LIMIT 1) AS workflow,
    CASE WHEN b.failed > 0 THEN ARRAY(
        SELECT c.id FROM (
            SELECT j.id, j.status FROM pipeline.jobs j WHERE j.batch_id = b.id ORDER BY j.id LIMIT 10000) c
        WHERE c.status IN ('failed', 'cancelled') ORDER BY c.id LIMIT 5) ELSE '{}' END AS first_failed
    FROM pipeline.batches b WHERE b.parent_job = :id ORDER BY b.id DESC LIMIT 20""")
EVENTS = text("""SELECT name, at, taken_at, octet_length(body::text) AS size,
    CASE WHEN length(left(body::text, 1001)) > 1000 THEN left(body::text, 1000) || '…' ELSE body::text END AS preview
    FROM pipeline.signals WHERE job_id = :id ORDER BY seq DESC LIMIT 200""")
RATE_LIMITS = text("""SELECT l.name, l.rate, l.burst, coalesce(l.paused_until > now(), false) AS paused,
    CASE WHEN l.paused_until > now() THEN nullif(l.paused_until, 'infinity') END AS paused_until,
    CASE WHEN l.paused_until > now() THEN l.pause_reason END AS pause_reason,
    CASE WHEN l.next_at > now() THEN extract(epoch FROM l.next_at - now())::float8 ELSE 0 END AS ahead,
    (SELECT count(*) FROM (SELECT 1 FROM pipeline.outbox o
        WHERE o.rate_limit = l.name AND o.sent_at IS NULL LIMIT 10000) o) AS waiting
    FROM pipeline.rate_limits l ORDER BY l.name LIMIT 1000""")


def rate_limits(connection: Connection) -> list[dict[str, Any]]:
    """Each with its rate and pause, and how many jobs wait with it, by name."""
    return [dict(row) for row in connection.execute(RATE_LIMITS).mappings()]


def look(connection: Connection, job_id: UUID, late: float) -> dict[str, Any]:
    """``waiting`` (None: for nobody and nothing that somebody brings), ``parent``, ``children`` by batch, ``events``;
    the newest first. ``hands`` (None: nobody is needed now): who could take it. ``late``: two heartbeats in seconds."""
    waiting = connection.execute(WAITING, {"id": job_id}).mappings().one_or_none()
    parent = connection.execute(PARENT, {"id": job_id}).mappings().one_or_none()
    hands = connection.execute(HANDS, {"id": job_id, "late": late}).mappings().one_or_none()
    return {
        "waiting": dict(waiting) if waiting else None,
        "hands": dict(hands) if hands else None,
        "parent": dict(parent) if parent else None,
        "children": [dict(row) for row in connection.execute(CHILDREN, {"id": job_id}).mappings()],
        "events": [dict(row) for row in connection.execute(EVENTS, {"id": job_id}).mappings()],
    }


def waiting_phase(connection: Connection, job_id: UUID, event: str) -> tuple[str, str] | None:
    """The workflow and phase of which the event will be the result; None if the job does not wait for it."""
    row = connection.execute(WAITING_PHASE, {"id": job_id, "event": event}).one_or_none()
    return None if row is None else (row.workflow, row.phase)
