-- On its way, a job touches no index: its steps are heap-only updates, which leave nothing behind for vacuum and write
-- half the WAL. So no index names a column that those steps change. The columns below are null while a job waits or
-- runs, and PostgreSQL itself keeps them true. Running jobs are found by their row in the outbox, which now stays for
-- as long as the job lives.
DROP INDEX jobs_running, jobs_failed, jobs_finished, jobs_retryable, jobs_dead, jobs_processor;

ALTER TABLE jobs
    -- 'phase:status' of a job that has ended or backs off.
    ADD COLUMN rest text GENERATED ALWAYS AS (
        CASE WHEN status NOT IN ('pending', 'running') THEN phase || ':' || status END) STORED,
    ADD COLUMN failed_in text GENERATED ALWAYS AS (CASE WHEN status = 'failed' THEN phase END) STORED,
    -- The processor that a running job of a pool holds.
    ADD COLUMN processor text GENERATED ALWAYS AS (
        CASE WHEN slot IS NOT NULL THEN workflow || '.' || phase || '-processor-' || slot END) STORED;

CREATE INDEX jobs_resting ON jobs (workflow, rest, id) WHERE rest IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (workflow, failed_in, cause, id) WHERE failed_in IS NOT NULL;
CREATE UNIQUE INDEX jobs_processor ON jobs (processor) WHERE processor IS NOT NULL;

INSERT INTO outbox (job_id, phase_id, priority, sent_at, lane)
SELECT j.id, coalesce(j.carrier, ph.id), j.priority, coalesce(j.sent_at, j.locked_at), j.lane
FROM jobs j JOIN phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
WHERE j.status = 'running'
ON CONFLICT DO NOTHING;
