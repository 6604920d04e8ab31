-- The named processors of every pool: idle, busy, or in error (busy under a worker that gives no sign of life).
CREATE OR REPLACE VIEW pipeline.processors AS
SELECT ph.workflow, ph.phase, ph.phase || '-processor-' || p.number AS processor,
       CASE WHEN j.id IS NULL THEN 'idle'
            WHEN j.heartbeat_at < now() - ph.stale_after THEN 'error'
            ELSE 'busy' END AS state,
       j.id AS job_id, j.locked_by, j.locked_at, j.heartbeat_at
FROM pipeline.places p JOIN pipeline.phases ph ON ph.id = p.phase_id
     LEFT JOIN pipeline.jobs j ON j.id = p.job_id AND j.status = 'running'
WHERE p.number <= ph.pool OR p.job_id IS NOT NULL;
