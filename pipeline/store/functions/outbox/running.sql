-- The jobs that run, found by the messages that are out: as many rows as the queues and the workers hold, however many
-- jobs wait or have ended.
CREATE OR REPLACE VIEW pipeline.running_jobs AS
SELECT j.* FROM pipeline.jobs j
WHERE j.status = 'running' AND j.id = ANY (ARRAY(SELECT o.job_id FROM pipeline.outbox o WHERE o.sent_at IS NOT NULL));
