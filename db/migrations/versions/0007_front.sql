-- Lists, groups of dead letters and rates are read by an index; nothing the front asks reads the whole table.

-- Why a job failed, as its group has it; written when it fails (pipeline_cause).
ALTER TABLE jobs ADD COLUMN cause text;
UPDATE jobs SET cause = 'unknown' WHERE status = 'failed';

CREATE INDEX jobs_dead ON jobs (workflow, phase, cause, id) WHERE status = 'failed';
-- Only of jobs that rest: an index of all jobs would be written at every step, and the planner would walk it where
-- the transitions look a job up by its id. No transition's condition implies this one.
CREATE INDEX jobs_finished ON jobs (workflow, phase, status, id) WHERE completed_at > '-infinity';
CREATE INDEX jobs_retryable ON jobs (workflow, phase, id) WHERE status = 'retryable';
CREATE INDEX attempts_finished ON attempts (finished_at);
CREATE INDEX batches_open ON batches (id) WHERE completed_at IS NULL;

-- One row a minute and phase that had something to do: the charts.
CREATE TABLE rollups (
    at        timestamptz NOT NULL,
    queue     text NOT NULL,
    waiting   integer NOT NULL,
    queued    integer NOT NULL,
    running   integer NOT NULL,
    dead      integer NOT NULL,
    succeeded integer NOT NULL,
    retried   integer NOT NULL,
    crashed   integer NOT NULL,
    waited    integer NOT NULL,
    failed    integer NOT NULL,
    cancelled integer NOT NULL,
    CONSTRAINT rollups_pkey PRIMARY KEY (at, queue)
);

-- The counters of workers that were pruned, so that a total never falls.
CREATE TABLE counter_totals (
    name text PRIMARY KEY,
    n    bigint NOT NULL
);
