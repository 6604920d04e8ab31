-- The named processors of every pool: idle, busy, or in error (busy under a worker that gives no sign of life).
CREATE OR REPLACE VIEW pipeline.processors AS
SELECT ph.workflow, ph.phase, ph.phase || '-processor-' || s.slot AS processor,
       CASE WHEN j.id IS NULL THEN 'idle'
            WHEN j.heartbeat_at < now() - ph.stale_after THEN 'error'
            ELSE 'busy' END AS state,
       j.id AS job_id, j.locked_by, j.locked_at, j.heartbeat_at
FROM pipeline.phases ph CROSS JOIN LATERAL generate_series(1, ph.pool) AS s(slot)
     LEFT JOIN pipeline.jobs j ON j.processor = pipeline.processor(ph.workflow, ph.phase, s.slot);
