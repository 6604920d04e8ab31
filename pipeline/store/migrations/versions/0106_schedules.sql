-- When jobs of a workflow are submitted by themselves. The leader of maintenance works out the moments; each of its steps
-- names the revision that it has read, and every change of a row raises that.
CREATE TABLE pipeline.schedules (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow       text NOT NULL,
    name           text NOT NULL,
    -- 'code': 'pipeline migrate' writes and removes it. 'run time': pipeline.schedule() does.
    source         text NOT NULL,
    cron           text,
    every          interval,
    timezone       text NOT NULL DEFAULT 'UTC',
    body           jsonb NOT NULL DEFAULT '{}',
    priority       smallint NOT NULL DEFAULT 0,
    tags           text[] NOT NULL DEFAULT '{}',
    overlap        text NOT NULL DEFAULT 'allow',
    -- Of the moments that were missed, so many of the latest, or those that are not older than this.
    catch_up       integer,
    catch_up_for   interval,
    revision       bigint NOT NULL DEFAULT 1,
    -- The oldest moment whose job has not been submitted; while not planned, the moments after this one count.
    next_at        timestamptz NOT NULL DEFAULT now(),
    planned        boolean NOT NULL DEFAULT false,
    -- The moments of the past that somebody asked for, from the first whose job has not been submitted.
    backfill_at    timestamptz,
    backfill_until timestamptz,
    -- The next moment waits for the jobs of earlier ones to end.
    waits          boolean NOT NULL DEFAULT false,
    paused_at      timestamptz,
    last_at        timestamptz,
    last_job       uuid,
    -- Jobs that may not have ended yet; not kept where they may overlap.
    open_jobs      uuid[] NOT NULL DEFAULT '{}',
    -- Why no moments can be worked out, or why the last one was without a job.
    problem        text,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    -- When the leader has something to do. A schedule that waits is looked up by that, and one that is backfilled by that.
    look_at        timestamptz GENERATED ALWAYS AS (CASE
        WHEN waits OR paused_at IS NOT NULL THEN 'infinity'::timestamptz
        WHEN NOT planned THEN '-infinity'::timestamptz
        ELSE next_at END) STORED,
    CONSTRAINT schedules_name UNIQUE (workflow, name),
    CONSTRAINT name_is_a_word CHECK (name ~ '^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$' AND length(name) <= 50),
    CONSTRAINT source_is_known CHECK (source IN ('code', 'run time')),
    CONSTRAINT cron_or_interval CHECK (num_nonnulls(cron, every) = 1),
    CONSTRAINT interval_is_in_seconds CHECK (every >= interval '1 second' AND every = date_trunc('second', every)),
    CONSTRAINT overlap_is_known CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel')),
    CONSTRAINT one_way_to_catch_up CHECK (num_nonnulls(catch_up, catch_up_for) = 1),
    CONSTRAINT catch_up_is_bounded CHECK (catch_up BETWEEN 0 AND 1000 AND catch_up_for IS NULL
        OR catch_up_for BETWEEN interval '0' AND interval '31 days' AND catch_up IS NULL),
    CONSTRAINT priority_is_a_digit CHECK (priority BETWEEN 0 AND 9),
    CONSTRAINT backfill_has_an_end CHECK ((backfill_at IS NULL) = (backfill_until IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500);
CREATE INDEX schedules_look ON pipeline.schedules (look_at) WHERE look_at < 'infinity';
CREATE INDEX schedules_waiting ON pipeline.schedules (id) WHERE waits;
CREATE INDEX schedules_backfill ON pipeline.schedules (backfill_at) WHERE backfill_at IS NOT NULL;
