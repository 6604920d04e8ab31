-- What the steps of phases returned (job.step). Text, not jsonb: a later attempt reads exactly what the first one wrote.
-- Rows are only added, and go with their job. The fence says which attempt ran the step.
CREATE TABLE pipeline.steps (
    job_id uuid NOT NULL,
    fence  bigint NOT NULL,
    at     timestamptz NOT NULL DEFAULT now(),
    phase  text NOT NULL,
    name   text NOT NULL,
    value  text NOT NULL,
    CONSTRAINT steps_pkey PRIMARY KEY (job_id, phase, name),
    CONSTRAINT name_is_short CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT value_is_small CHECK (octet_length(value) <= 65536)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);
