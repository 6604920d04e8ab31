"""What holds in PostgreSQL after every step: each statement finds the rows that break its truth."""

from __future__ import annotations

BROKEN = {
    "exactly the jobs that have not ended have one outbox row, marked as sent while they run": """SELECT coalesce(j.id, o.job_id) FROM pipeline.jobs j FULL JOIN pipeline.outbox o ON o.job_id = j.id
           WHERE (j.id IS NOT NULL AND j.completed_at IS NULL) IS DISTINCT FROM (o.job_id IS NOT NULL)
              OR (j.status = 'running' AND o.sent_at IS NULL)""",
    "running jobs are found by their outbox rows": "SELECT id FROM pipeline.jobs WHERE status = 'running' EXCEPT SELECT id FROM pipeline.running_jobs",
    "every fence has one row of history once its attempt has ended": """SELECT j.id FROM pipeline.jobs j LEFT JOIN pipeline.attempts a ON a.job_id = j.id GROUP BY j.id
           HAVING count(DISTINCT a.fence) <> j.fence - (j.status = 'running')::int OR max(a.fence) > j.fence""",
    "no budget is overdrawn, and one that is used up ends the job": """SELECT j.id FROM pipeline.jobs j JOIN pipeline.phases p USING (workflow, phase)
           WHERE attempts > j.max_attempts OR crashes > p.max_crashes
              OR (completed_at IS NULL AND (attempts >= j.max_attempts OR crashes >= p.max_crashes))""",
    "a job of a pool has a place while it runs or its message is out, and no other has": """SELECT coalesce(j.id, c.job_id) FROM pipeline.jobs j JOIN pipeline.phases p USING (workflow, phase)
           JOIN pipeline.outbox o ON o.job_id = j.id FULL JOIN pipeline.places c ON c.job_id = j.id AND c.phase_id = p.id
           WHERE (j.id IS NOT NULL AND p.pool IS NOT NULL AND o.sent_at IS NOT NULL) <> (c.job_id IS NOT NULL)""",
    "a job has one place": "SELECT job_id FROM pipeline.places WHERE job_id IS NOT NULL GROUP BY job_id HAVING count(*) > 1",
    "a key belongs to a job that has it": """SELECT k.job_id FROM pipeline.keys k LEFT JOIN pipeline.jobs j ON j.id = k.job_id
           WHERE (j.workflow, j.idempotency_key) IS DISTINCT FROM (k.workflow, k.key)""",
    "a job that has not begun expires by its row in the outbox": """SELECT o.job_id FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
           WHERE o.expires_at IS NOT NULL AND (j.fence > 0 OR o.expires_at IS DISTINCT FROM j.expires_at)""",
    "a batch counts its children that have not ended": """SELECT b.id FROM pipeline.batches b LEFT JOIN pipeline.jobs j ON j.batch_id = b.id GROUP BY b.id
           HAVING b.remaining <> count(j.id) FILTER (WHERE j.counted IS NULL) OR b.total <> count(j.id)
               OR (b.completed_at IS NOT NULL) <> (b.sealed AND b.remaining = 0)""",
    "a complete batch has one callback, and no other has": """SELECT b.id FROM pipeline.batches b WHERE (callback_job IS NOT NULL) <> (completed_at IS NOT NULL)
           UNION ALL SELECT id FROM pipeline.jobs WHERE workflow = 'plain' AND id NOT IN (SELECT callback_job FROM pipeline.batches
                                                                                 WHERE callback_job IS NOT NULL)""",
}
