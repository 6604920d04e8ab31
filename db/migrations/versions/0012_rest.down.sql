DROP VIEW IF EXISTS running_jobs;
DELETE FROM outbox o USING jobs j WHERE j.id = o.job_id AND j.status = 'running';
ALTER TABLE jobs DROP COLUMN rest, DROP COLUMN failed_in, DROP COLUMN processor;
CREATE UNIQUE INDEX jobs_processor ON jobs (workflow, phase, slot) WHERE slot IS NOT NULL;
CREATE INDEX jobs_running ON jobs (id) WHERE status = 'running';
CREATE INDEX jobs_failed ON jobs (workflow, phase, id) WHERE status = 'failed';
CREATE INDEX jobs_dead ON jobs (workflow, phase, cause, id) WHERE status = 'failed';
CREATE INDEX jobs_finished ON jobs (workflow, phase, status, id) WHERE completed_at > '-infinity';
CREATE INDEX jobs_retryable ON jobs (workflow, phase, id) WHERE status = 'retryable';
