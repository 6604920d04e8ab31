-- A lane is what several jobs share outside: one marketplace, one API. It has a rate that all workers keep
-- together, and a pause during which its jobs wait at the gate.

CREATE TABLE lanes (
    name         text PRIMARY KEY,
    rate         double precision,
    burst        double precision NOT NULL DEFAULT 1,
    next_at      timestamptz NOT NULL DEFAULT '-infinity',
    paused_until timestamptz,
    pause_reason text,
    CONSTRAINT rate_is_above_zero CHECK (rate > 0),
    CONSTRAINT burst_is_at_least_one CHECK (burst >= 1),
    CONSTRAINT name_is_short CHECK (length(name) BETWEEN 1 AND 200)
);

-- The moment a job was promised its calls, while it waits for it.
CREATE TABLE turns (
    job_id uuid NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    lane   text NOT NULL,
    calls  integer NOT NULL,
    at     timestamptz NOT NULL,
    until  timestamptz NOT NULL,
    CONSTRAINT turns_pkey PRIMARY KEY (job_id, lane)
);

ALTER TABLE jobs ADD COLUMN lane text;
ALTER TABLE outbox ADD COLUMN lane text;
CREATE INDEX outbox_lane ON outbox (lane, seq) WHERE lane IS NOT NULL AND sent_at IS NULL;
