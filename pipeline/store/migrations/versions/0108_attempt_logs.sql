-- Why an attempt failed: its traceback, and what its phase logged last. Written with the transition that ends an attempt
-- badly, and by nothing else; rows are only added, and go with their job.
CREATE TABLE pipeline.attempt_logs (
    job_id    uuid NOT NULL,
    fence     bigint NOT NULL,
    traceback text,
    lines     text,
    CONSTRAINT attempt_logs_pkey PRIMARY KEY (job_id, fence),
    CONSTRAINT texts_are_short CHECK (octet_length(traceback) <= 8192 AND octet_length(lines) <= 8192)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);

-- It ended without saying so: it was killed, or its machine was.
ALTER TABLE pipeline.workers ADD COLUMN died boolean NOT NULL DEFAULT false;
