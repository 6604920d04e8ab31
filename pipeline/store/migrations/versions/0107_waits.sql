-- What somebody else brings to a job that waits: 'event:<name>', or 'children:<batch>'. Null: nothing but time and a place.
ALTER TABLE pipeline.outbox ADD COLUMN waits_for text;

-- Events that jobs were told of (pipeline.signal), before they wait for them or while they do. Rows go with their job.
CREATE TABLE pipeline.signals (
    job_id   uuid NOT NULL,
    seq      bigint GENERATED ALWAYS AS IDENTITY,
    at       timestamptz NOT NULL DEFAULT now(),
    -- When a wait was ended by it; each ends one.
    taken_at timestamptz,
    name     text NOT NULL,
    body     jsonb NOT NULL,
    CONSTRAINT signals_pkey PRIMARY KEY (job_id, seq),
    CONSTRAINT name_is_short CHECK (length(name) BETWEEN 1 AND 200)
);

-- Children: jobs of a batch that a job waits for. answered_at: it was told that it need not wait any longer.
ALTER TABLE pipeline.batches ADD COLUMN parent_job uuid, ADD COLUMN policy text, ADD COLUMN depth integer,
    ADD COLUMN answered_at timestamptz,
    ADD CONSTRAINT policy_is_known CHECK (policy IN ('best_effort', 'all', 'any'));
CREATE INDEX batches_of_parent ON pipeline.batches (parent_job) WHERE parent_job IS NOT NULL;
-- In the order in which they were submitted.
DROP INDEX pipeline.jobs_of_batch;
CREATE INDEX jobs_of_batch ON pipeline.jobs (batch_id, id) WHERE batch_id IS NOT NULL;
