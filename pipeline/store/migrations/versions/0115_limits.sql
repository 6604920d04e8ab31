-- The name of the rate limit of a phase's jobs, and of its breaker; with fields of the body in it, such as shop:{shop}.
ALTER TABLE pipeline.phases ADD COLUMN rate_limit text, ADD COLUMN breaker text,
    ADD CONSTRAINT a_breaker_holds_its_jobs_at_a_rate_limit CHECK (breaker = rate_limit);

-- What the code declares of a rate limit; and for one whose name was made from a template, the row that has its rate.
ALTER TABLE pipeline.rate_limits ADD COLUMN template text, ADD COLUMN declared_rate double precision,
    ADD COLUMN declared_burst double precision, ADD COLUMN rate_is_set boolean NOT NULL DEFAULT false;
UPDATE pipeline.rate_limits SET rate_is_set = true WHERE rate IS NOT NULL;

-- A circuit breaker: closed (open_until is null), open until then, and after that half-open: one job may probe.
CREATE TABLE pipeline.breakers (
    name            text PRIMARY KEY,
    failures        integer NOT NULL DEFAULT 0,
    open_until      timestamptz,
    probe_by        uuid,
    probe_until     timestamptz,
    closed_at       timestamptz,
    last_success_at timestamptz,
    last_failure_at timestamptz,
    last_error      text,
    times_opened    integer NOT NULL DEFAULT 0,
    probes          integer NOT NULL DEFAULT 0,
    CONSTRAINT name_is_short CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT failures_are_a_count CHECK (failures >= 0),
    CONSTRAINT probe_only_while_open CHECK (probe_by IS NULL OR open_until IS NOT NULL),
    CONSTRAINT a_probe_ends CHECK ((probe_by IS NULL) = (probe_until IS NULL))
);

-- Failures in a row: each cost its job an execution, which is given back if they open the breaker.
CREATE TABLE pipeline.breaker_failures (
    breaker text NOT NULL REFERENCES pipeline.breakers (name) ON DELETE CASCADE,
    job_id  uuid NOT NULL,
    fence   bigint NOT NULL,
    CONSTRAINT breaker_failures_pkey PRIMARY KEY (breaker, job_id, fence)
);
