-- First, so that nobody submits a job with a key while the keys are brought over.
ALTER TABLE pipeline.jobs ADD COLUMN tags text[], ADD COLUMN expires_at timestamptz;

-- Which job has a key of its workflow, and until when: null, until it has ended; 'infinity', for as long as it is kept.
-- Whether a job has ended is read from its own row, in the same statement, so that no step of a job writes here: only who
-- submits, replays or removes jobs takes a lock on these rows (pipeline.take_key).
CREATE TABLE pipeline.keys (
    workflow text NOT NULL,
    key      text NOT NULL,
    job_id   uuid NOT NULL,
    until    timestamptz,
    CONSTRAINT keys_pkey PRIMARY KEY (workflow, key)
);
INSERT INTO pipeline.keys (workflow, key, job_id, until)
SELECT workflow, idempotency_key, id, 'infinity' FROM pipeline.jobs WHERE idempotency_key IS NOT NULL ORDER BY 1, 2;
DROP INDEX pipeline.jobs_idempotency;

-- The jobs of a tag in the order of time. A table, and not an index of jobs: a page is read in its order, and the end of a
-- job, which goes into every index of its table, writes nothing here.
CREATE TABLE pipeline.tags (
    tag    text NOT NULL,
    job_id uuid NOT NULL,
    CONSTRAINT tags_pkey PRIMARY KEY (tag, job_id)
);

-- Set while the job has not begun.
ALTER TABLE pipeline.outbox ADD COLUMN expires_at timestamptz;
CREATE INDEX outbox_expires ON pipeline.outbox (expires_at) WHERE expires_at IS NOT NULL;
-- When maintenance looks for expired jobs next, in milliseconds (pipeline.expire_due). A sequence, because that changes at
-- once and leaves no versions behind. No guarantee rests on it.
CREATE UNLOGGED SEQUENCE pipeline.expiry_look MINVALUE 1;

-- Not validated: the rows there passed a narrower one, and reading them all would keep everybody waiting.
ALTER TABLE pipeline.attempts DROP CONSTRAINT outcome_is_known,
    ADD CONSTRAINT outcome_is_known CHECK (outcome IN ('succeeded', 'retried', 'exhausted', 'failed', 'snoozed',
        'released', 'crashed', 'stale', 'poisoned', 'cancelled', 'undeliverable', 'expired')) NOT VALID;
