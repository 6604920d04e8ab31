-- What somebody does with many jobs, at a rate if they say so, and jobs that are sent ahead as a canary: seen by everybody,
-- paused and stopped by anybody. The leader of maintenance does it, part by part.
CREATE TABLE pipeline.bulk_actions (
    id         bigint GENERATED ALWAYS AS IDENTITY,
    at         timestamptz NOT NULL DEFAULT now(),
    who        text NOT NULL,
    door       text NOT NULL,
    origin     text,
    action     text NOT NULL,
    state      text NOT NULL DEFAULT 'running',
    -- A group of dead letters (workflow, phase, cause), or what pipeline.find_jobs looks for.
    filter     jsonb NOT NULL,
    per_second double precision,
    reason     text,
    -- How many matched when it began.
    total      integer NOT NULL,
    done       integer NOT NULL DEFAULT 0,
    -- Where the next part begins; of a canary: the job.
    place      uuid,
    -- What was let through until now.
    step_at    timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    audit_id   bigint,
    CONSTRAINT bulk_actions_pkey PRIMARY KEY (id),
    CONSTRAINT action_is_known CHECK (action IN ('replay', 'discard', 'cancel', 'canary')),
    CONSTRAINT state_is_known CHECK (state IN ('running', 'paused', 'stopped', 'done')),
    CONSTRAINT rate_is_above_zero CHECK (per_second > 0),
    CONSTRAINT it_ends_once CHECK ((ended_at IS NOT NULL) = (state IN ('stopped', 'done')))
);
CREATE INDEX bulk_actions_open ON pipeline.bulk_actions (id) WHERE ended_at IS NULL;
