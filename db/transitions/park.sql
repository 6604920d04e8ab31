-- The job waits at no cost: rate limit, Retry-After, open breaker ('parked'), or its worker shuts down
-- ('handed_back'). Verdicts: the outcome, or 'lost'.
CREATE OR REPLACE FUNCTION pipeline_park(p_id uuid, p_fence bigint, p_outcome text, p_reason text,
                                         p_delay double precision, p_error text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_job jobs;
BEGIN
    SELECT * INTO v_job FROM jobs WHERE id = p_id AND fence = p_fence AND status = 'running'
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN pipeline_not_held(p_id, p_fence); END IF;
    PERFORM pipeline_note(v_job, p_outcome, p_error);
    PERFORM pipeline_end_waiting(v_job, 'pending', v_job.attempts, v_job.crashes,
                                 now() + make_interval(secs => p_delay), p_reason, NULL);
    RETURN p_outcome;
END $$;
