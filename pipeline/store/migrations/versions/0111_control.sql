-- pool, throttle_count and throttle_seconds are in force. An operator may have set them: then a deploy changes only what
-- the code declares, which is what comes back when the operator's value is taken away.
ALTER TABLE pipeline.phases
    ADD COLUMN declared_pool integer,
    ADD COLUMN declared_throttle_count integer,
    ADD COLUMN declared_throttle_seconds double precision,
    ADD COLUMN pool_is_set boolean NOT NULL DEFAULT false,
    ADD COLUMN rate_is_set boolean NOT NULL DEFAULT false;
UPDATE pipeline.phases SET declared_pool = pool, declared_throttle_count = throttle_count, declared_throttle_seconds = throttle_seconds;

ALTER TABLE pipeline.workers
    -- Which code it runs.
    ADD COLUMN version text NOT NULL DEFAULT '',
    -- Bytes that it has in memory, as of its last heartbeat.
    ADD COLUMN memory bigint,
    -- It was asked to take nothing new.
    ADD COLUMN draining_at timestamptz,
    -- Jobs that were settled without the thread that is stuck in them.
    ADD COLUMN stuck_jobs uuid[] NOT NULL DEFAULT '{}';

-- Who did what, when, why, to which jobs, from where. Written in the transaction that does it; rows are only added, and
-- go by age.
CREATE TABLE pipeline.audit (
    id      bigint GENERATED ALWAYS AS IDENTITY,
    at      timestamptz NOT NULL DEFAULT now(),
    who     text NOT NULL,
    door    text NOT NULL,
    origin  text,
    action  text NOT NULL,
    -- What it was done to, if not to jobs: a phase, a schedule, a worker.
    subject text,
    reason  text,
    jobs    integer,
    job_ids uuid[] NOT NULL DEFAULT '{}',
    detail  jsonb,
    CONSTRAINT audit_pkey PRIMARY KEY (id),
    CONSTRAINT door_is_known CHECK (door IN ('api', 'dashboard', 'command line', 'sql'))
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX audit_at ON pipeline.audit (at);
CREATE INDEX audit_of_job ON pipeline.audit USING gin (job_ids) WITH (fastupdate = off);
