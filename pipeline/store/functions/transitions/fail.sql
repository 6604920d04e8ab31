-- A permanent error: no retry can help. Verdicts: 'failed', 'lost', 'locked'.
CREATE OR REPLACE FUNCTION pipeline.fail(p_id uuid, p_fence bigint, p_error text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_job pipeline.jobs;
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs WHERE id = p_id AND fence = p_fence AND status = 'running'
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN pipeline.not_held(p_id, p_fence); END IF;
    PERFORM pipeline.record_attempt(v_job, 'failed', p_error);
    PERFORM pipeline.end_failed(v_job, v_job.crashes, v_job.attempts + 1, p_error);
    RETURN 'failed';
END $$;
