-- The places of a pool: a row each, which one job owns from the moment its message is sent (or its worker continues with
-- it) until it leaves the phase. Nobody waits for a place that another transaction holds.

-- Give the job a free place. False if there is none.
CREATE OR REPLACE FUNCTION pipeline.take_place(p_phase integer, p_pool integer, p_job uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pipeline.places p SET job_id = p_job WHERE p.phase_id = p_phase AND p.number = (
        SELECT f.number FROM pipeline.places f WHERE f.phase_id = p_phase AND f.job_id IS NULL AND f.number <= p_pool
            AND pipeline.within_pool(p_phase, p_pool)
        ORDER BY f.number LIMIT 1 FOR UPDATE SKIP LOCKED);
    RETURN FOUND;
END $$;

-- After a pool was made smaller jobs run in places beyond it. They count like the others.
CREATE OR REPLACE FUNCTION pipeline.within_pool(p_phase integer, p_pool integer) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT 1 FROM pipeline.places x WHERE x.phase_id = p_phase AND x.number > p_pool AND x.job_id IS NOT NULL)
        OR (SELECT count(*) FROM pipeline.places b WHERE b.phase_id = p_phase AND b.job_id IS NOT NULL) < p_pool
$$;

CREATE OR REPLACE FUNCTION pipeline.own_place(p_phase integer, p_pool integer, p_job uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM pipeline.places p WHERE p.phase_id = p_phase AND p.job_id = p_job)
        OR pipeline.take_place(p_phase, p_pool, p_job);
END $$;

-- Each of these jobs gives back its place in the phase beside it.
CREATE OR REPLACE FUNCTION pipeline.leave_place(p_phases integer[], p_jobs uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pipeline.places p SET job_id = NULL FROM unnest(p_phases, p_jobs) AS a(phase, job)
    WHERE p.phase_id = a.phase AND p.job_id = a.job;
END $$;

-- Of the phases in which these jobs are.
CREATE OR REPLACE FUNCTION pipeline.leave_places(p_jobs uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pipeline.leave_place(array_agg(ph.id), array_agg(j.id)) FROM pipeline.jobs j
        JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
    WHERE j.id = ANY (p_jobs) AND ph.pool IS NOT NULL HAVING count(*) > 0;
END $$;

-- As many places as the pool has. Whoever has one beyond that keeps running, and leaves none; jobs that are out already get
-- the places of a pool that there was not.
CREATE OR REPLACE FUNCTION pipeline.set_places(p_phase integer, p_pool integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM pipeline.places p WHERE p.phase_id = p_phase AND p.number > coalesce(p_pool, 0)
        AND (p.job_id IS NULL OR p_pool IS NULL);
    INSERT INTO pipeline.places (phase_id, number) SELECT p_phase, n FROM generate_series(1, p_pool) AS n ON CONFLICT DO NOTHING;
    UPDATE pipeline.places p SET job_id = o.job_id
    FROM (SELECT f.number, row_number() OVER (ORDER BY f.number) AS turn FROM pipeline.places f
          WHERE f.phase_id = p_phase AND f.job_id IS NULL) free
    JOIN (SELECT j.id AS job_id, row_number() OVER (ORDER BY j.ready_at, j.id) AS turn
          FROM pipeline.jobs j JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
          WHERE ph.id = p_phase AND j.id = ANY (ARRAY(SELECT w.job_id FROM pipeline.outbox w WHERE w.sent_at IS NOT NULL))
            AND NOT EXISTS (SELECT 1 FROM pipeline.places h WHERE h.phase_id = p_phase AND h.job_id = j.id)
          ORDER BY j.ready_at, j.id LIMIT p_pool) o ON o.turn = free.turn
    WHERE p.phase_id = p_phase AND p.number = free.number AND p_pool IS NOT NULL;
END $$;
