"""Make PostgreSQL know the workflows that this code declares."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

from pipeline.flow.workflow import Workflow
from pipeline.rules.phase import PhaseSpec

UPSERT = text("""
    INSERT INTO phases (workflow, phase, position, queue, actor, pool, queue_limit, max_attempts, max_crashes,
                        stale_after, isolated, throttle_count, throttle_seconds)
    VALUES (:workflow, :phase, :position, :queue, :actor, :pool, :queue_limit, :max_attempts, :max_crashes,
            make_interval(secs => :stale_after), :isolated, :throttle_count, :throttle_seconds)
    ON CONFLICT (workflow, phase) DO UPDATE SET position = excluded.position, actor = excluded.actor,
        pool = excluded.pool, queue_limit = excluded.queue_limit, max_attempts = excluded.max_attempts,
        max_crashes = excluded.max_crashes, stale_after = excluded.stale_after, isolated = excluded.isolated,
        throttle_count = excluded.throttle_count, throttle_seconds = excluded.throttle_seconds
    WHERE (phases.position, phases.pool, phases.queue_limit, phases.max_attempts, phases.max_crashes,
           phases.stale_after, phases.isolated, phases.throttle_count, phases.throttle_seconds)
        IS DISTINCT FROM (excluded.position, excluded.pool, excluded.queue_limit, excluded.max_attempts,
           excluded.max_crashes, excluded.stale_after, excluded.isolated, excluded.throttle_count,
           excluded.throttle_seconds)
""")
CHAIN = text("""
    UPDATE phases p SET next_id = n.next_id
    FROM (SELECT id, lead(id) OVER (ORDER BY position) AS next_id FROM phases
          WHERE workflow = :workflow AND phase = ANY (:phases)) n
    WHERE p.id = n.id AND p.next_id IS DISTINCT FROM n.next_id
""")
# A phase that left the workflow keeps its row, so that its jobs can still be seen, but starts nothing new.
RETIRE = text("UPDATE phases SET position = 0 WHERE workflow = :workflow AND phase <> ALL (:phases) AND position > 0")


def register(connection: Connection, workflows: Iterable[Workflow], stale_after: float | None = None) -> None:
    """Insert or update the rows of ``phases``; nothing is written when nothing changed."""
    for workflow in workflows:
        names = [actor.spec.name for actor in workflow.phases]
        connection.execute(RETIRE, {"workflow": workflow.name, "phases": names})
        for position, actor in enumerate(workflow.phases, 1):
            connection.execute(UPSERT, _row(actor.spec, position, stale_after))
        connection.execute(CHAIN, {"workflow": workflow.name, "phases": names})


def _row(spec: PhaseSpec, position: int, stale_after: float | None) -> dict[str, object]:
    return {
        "workflow": spec.workflow, "phase": spec.name, "position": position, "queue": spec.queue, "actor": spec.actor,
        "pool": spec.pool, "queue_limit": spec.queue_limit, "max_attempts": spec.max_attempts,
        "max_crashes": spec.max_crashes, "stale_after": spec.stale_after or stale_after, "isolated": spec.isolated,
        "throttle_count": spec.throttle.count if spec.throttle else None,
        "throttle_seconds": spec.throttle.seconds if spec.throttle else None,
    }  # fmt: skip
