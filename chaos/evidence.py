"""Collecting what the reconciliation judges."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import httpx

from chaos import times
from chaos.hooked import Hooked
from chaos.observer import Deadline, until
from chaos.reconcile import Absence, Attempt, Effect, Evidence, JobRow, StepCall, Waited
from chaos.schedules import Schedules
from chaos.stage import Stage
from chaos.subject import ENDING, KEYED, PER_KEY, WAITING
from chaos.uniques import Uniques
from chaos.words import Words
from pipeline.broker.topology import dead_letter_queue

JOBS = """SELECT j.id, j.status, j.fence, (SELECT array_agg(p.phase ORDER BY p.position) FROM pipeline.phases p
        WHERE p.workflow = j.workflow AND p.position > 0) AS phases FROM pipeline.jobs j WHERE j.id = ANY (%s)"""
ATTEMPTS = """SELECT job_id AS job, fence, phase, outcome, pipeline.worker_name(worker, worker_no) AS worker,
        started_at AS started, finished_at AS finished, error
    FROM pipeline.attempts WHERE job_id = ANY (%s) ORDER BY job_id, fence"""
EFFECTS = "SELECT job_id AS job, phase, fence FROM chaos_ledger WHERE job_id = ANY (%s)"
# A sleep is kept as a step that returned nothing.
KEPT = "SELECT job_id AS job, phase, name, fence FROM pipeline.steps WHERE job_id = ANY (%s) AND value <> 'null'"
CHILDREN = """SELECT j.id FROM pipeline.batches b JOIN pipeline.jobs j ON j.batch_id = b.id
    WHERE b.parent_job = ANY (%s) ORDER BY j.id"""
WAITED = """SELECT j.id AS job, j.result->>'ask' AS answer, (j.result->'spawn'->>'total')::integer AS told_of,
        (SELECT count(*) FROM pipeline.batches b WHERE b.parent_job = j.id AND b.answered_at IS NOT NULL) AS answered,
        (SELECT count(*) FROM pipeline.batches b JOIN pipeline.jobs c ON c.batch_id = b.id
            WHERE b.parent_job = j.id) AS children,
        (SELECT count(*) FROM pipeline.signals s WHERE s.job_id = j.id AND s.taken_at IS NOT NULL) AS taken
    FROM pipeline.jobs j WHERE j.id = ANY (%s) AND j.workflow = %s AND j.status = 'succeeded'"""
HOOKS_JOBS = """SELECT t.id FROM pipeline.jobs t WHERE t.workflow IN (SELECT submits FROM pipeline.hooks)
    AND t.body->>'job' = ANY (%s::uuid[]::text[]) ORDER BY t.id"""
HOOKED = """WITH told AS (
        SELECT t.body->>'job' AS job, array_agg(t.body->>'state' ORDER BY t.id) AS ends FROM pipeline.jobs t
        WHERE t.workflow IN (SELECT submits FROM pipeline.hooks) GROUP BY 1)
    SELECT j.id AS job, j.status, h.wanted, coalesce(t.ends, '{}') AS told
    FROM pipeline.jobs j LEFT JOIN told t ON t.job = j.id::text CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE k.event = j.status) AS wanted, count(*) AS hooks
        FROM pipeline.hooks k WHERE k.workflow = j.workflow) h
    WHERE j.id = ANY (%s) AND j.completed_at IS NOT NULL AND (h.hooks > 0 OR t.ends IS NOT NULL)"""
# More jobs of a key than may be under way at the moment in which one of them was begun.
CROWDED = """WITH spans AS (
        SELECT j.id, j.body->>'customer' AS key, a.started_at, a.finished_at
        FROM pipeline.jobs j JOIN pipeline.attempts a ON a.job_id = j.id
        WHERE j.id = ANY (%s) AND j.workflow = %s AND a.started_at IS NOT NULL)
    SELECT DISTINCT s.id FROM spans s
    JOIN spans o ON o.key = s.key AND o.started_at <= s.started_at AND o.finished_at > s.started_at
    GROUP BY s.id, s.started_at HAVING count(DISTINCT o.id) > %s"""
OUTBOX = "SELECT count(*) FROM pipeline.outbox WHERE job_id = ANY (%s)"
UNFINISHED = "SELECT count(*) FROM pipeline.jobs WHERE id = ANY (%s) AND completed_at IS NULL"
EMPTY_WITHIN = 40.0


def wait_for_the_end(stage: Stage, jobs: Sequence[UUID], seconds: float) -> bool:
    """True when all jobs are final; False when the time was up before."""
    ids = list(jobs)
    try:
        return bool(until(lambda: not stage.observer.one(UNFINISHED, ids), seconds, "the jobs to end", pause=0.1))
    except Deadline:
        return False


def children(stage: Stage, jobs: Sequence[UUID]) -> list[UUID]:
    """What these jobs have spawned; judged like what was submitted."""
    return [row["id"] for row in stage.observer.rows(CHILDREN, list(jobs)) if row["id"] not in jobs]


def hooks_jobs(stage: Stage, jobs: Sequence[UUID]) -> list[UUID]:
    """What the ends of these jobs have submitted; judged like what was submitted."""
    return [row["id"] for row in stage.observer.rows(HOOKS_JOBS, list(jobs)) if row["id"] not in jobs]


def gather(
    stage: Stage,
    jobs: Sequence[UUID],
    cancelled: Sequence[UUID],
    absences: Sequence[Absence],
    *,
    failing: Sequence[UUID] = (),
    uniques: Uniques | None = None,
    words: Words | None = None,
    schedules: Schedules | None = None,
) -> Evidence:
    """The state of these jobs now; messages that are still on their way to being refused are given a while."""
    ids = list(jobs)
    look = stage.observer
    effects = [Effect(**row) for row in look.rows(EFFECTS, ids)] if stage.subject.has_ledger else None
    return Evidence(
        submitted=ids,
        phases=stage.phases(),
        effects=effects,
        jobs=[JobRow(**row) for row in look.rows(JOBS, ids)],
        attempts=[Attempt(**row) for row in look.rows(ATTEMPTS, ids)],
        called=_called(stage, set(ids)),
        kept=[StepCall(**row) for row in look.rows(KEPT, ids)],
        unique_twice=sorted(uniques.twice) if uniques else (),
        unanswered=uniques.unanswered() if uniques else (),
        waited=[Waited(**row) for row in look.rows(WAITED, ids, WAITING)],
        delivered=frozenset(words.delivered) if words else frozenset(),
        hooked=[Hooked(**row) for row in look.rows(HOOKED, ids)],
        scheduled=schedules.found(look) if schedules else (),
        crowded=[row["id"] for row in look.rows(CROWDED, ids, KEYED, PER_KEY)],
        outbox=look.one(OUTBOX, ids),
        messages=_left_messages(stage),
        cancelled=cancelled,
        failing=failing,
        absences=absences,
        lease=timedelta(seconds=times.LEASE),
    )


def tell(stage: Stage, job: UUID) -> list[str]:
    """All that is known about a job that does not add up."""
    rows = stage.observer.rows("SELECT * FROM pipeline.jobs WHERE id = %s", job)
    rows += stage.observer.rows("SELECT * FROM pipeline.attempts WHERE job_id = %s ORDER BY fence", job)
    rows += stage.observer.rows("SELECT * FROM pipeline.outbox WHERE job_id = %s", job)
    told = [", ".join(f"{key}={value}" for key, value in row.items() if value is not None) for row in rows]
    return told + stage.crew.lines_about(str(job))


def _called(stage: Stage, jobs: set[UUID]) -> list[StepCall]:
    """What steps of these jobs did outside (see chaos.workflow), also on a stage of a fault's own, below this one's."""
    files = [file for file in (stage.folder / "steps", *stage.folder.glob("*/steps")) if file.is_file()]
    lines = [line.split() for file in files for line in file.read_text().splitlines()]
    calls = [StepCall(UUID(job), phase, name, int(fence)) for job, phase, name, fence in lines]
    return [call for call in calls if call.job in jobs]


def _left_messages(stage: Stage) -> dict[str, int]:
    queues = stage.all_queues()
    # Those that fail on purpose leave a dead letter, as they should.
    dead = [dead_letter_queue(queue) for queue in queues if not queue.startswith(f"{ENDING}.")]
    wanted = {*queues, *dead}
    left: dict[str, int] = {}

    def empty() -> bool:
        nonlocal left
        try:
            counts = stage.servers.rabbitmq.queue_counts(stage.name)
        except httpx.HTTPError:
            return False
        left = {queue: sum(counts.get(queue, (0, 0))) for queue in wanted}
        return not any(left.values())

    try:
        until(empty, EMPTY_WITHIN, "empty queues", pause=0.2)
    except Deadline:
        pass
    return left
