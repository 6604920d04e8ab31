-- The places of a pool: a row each, which one job owns from the moment its message is sent (or its worker continues with
-- it) until it leaves the phase. Nobody waits for a place that another transaction holds.

-- Give the job a free place. False if there is none.
CREATE OR REPLACE FUNCTION pipeline.take_place(p_phase integer, p_pool integer, p_job uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_number integer;
BEGIN
    SELECT p.number INTO v_number FROM pipeline.places p WHERE p.phase_id = p_phase AND p.job_id IS NULL AND p.number <= p_pool
    ORDER BY p.number LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE pipeline.places p SET job_id = p_job WHERE p.phase_id = p_phase AND p.number = v_number;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION pipeline.own_place(p_phase integer, p_pool integer, p_job uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM pipeline.places p WHERE p.phase_id = p_phase AND p.job_id = p_job)
        OR pipeline.take_place(p_phase, p_pool, p_job);
END $$;

CREATE OR REPLACE FUNCTION pipeline.leave_place(p_phase integer, p_job uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pipeline.places p SET job_id = NULL WHERE p.phase_id = p_phase AND p.job_id = p_job;
END $$;

-- Of the phases in which these jobs are.
CREATE OR REPLACE FUNCTION pipeline.leave_places(p_jobs uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pipeline.leave_place(ph.id, j.id) FROM pipeline.jobs j
        JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase WHERE j.id = ANY (p_jobs);
END $$;

-- As many places as the pool has. Whoever has one beyond that keeps running, and leaves none.
CREATE OR REPLACE FUNCTION pipeline.set_places(p_phase integer, p_pool integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM pipeline.places p WHERE p.phase_id = p_phase AND p.number > coalesce(p_pool, 0);
    INSERT INTO pipeline.places (phase_id, number) SELECT p_phase, n FROM generate_series(1, p_pool) AS n ON CONFLICT DO NOTHING;
END $$;
