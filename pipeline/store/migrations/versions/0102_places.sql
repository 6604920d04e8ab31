-- A pool's processors become rows of their own, and jobs no longer name theirs. The views that name all columns of jobs
-- are made again with the functions.
DROP VIEW IF EXISTS pipeline.processors, pipeline.running_jobs;

-- A row for each processor of a pool, and the job that has it.
CREATE TABLE pipeline.places (
    phase_id integer NOT NULL,
    number   integer NOT NULL,
    job_id   uuid,
    CONSTRAINT places_pkey PRIMARY KEY (phase_id, number)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500);
INSERT INTO pipeline.places (phase_id, number, job_id)
SELECT ph.id, n, j.id FROM pipeline.phases ph CROSS JOIN LATERAL generate_series(1, ph.pool) AS n
     LEFT JOIN pipeline.jobs j ON j.processor = ph.workflow || '.' || ph.phase || '-processor-' || n;
ALTER TABLE pipeline.jobs DROP COLUMN processor, DROP COLUMN slot;

-- 1 while the relay sleeps (pipeline.wake). A sequence, because that changes at once and leaves no versions behind. No
-- guarantee rests on it.
CREATE UNLOGGED SEQUENCE pipeline.relay_asleep MINVALUE 1;
