-- An application error: back off, or fail when the budget is used up. Verdicts: 'retried', 'exhausted', 'lost',
-- 'locked'.
CREATE OR REPLACE FUNCTION pipeline.retry(p_id uuid, p_fence bigint, p_error text, p_delay double precision)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_job pipeline.jobs;
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs WHERE id = p_id AND fence = p_fence AND status = 'running'
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN pipeline.not_held(p_id, p_fence); END IF;
    IF v_job.attempts + 1 >= v_job.max_attempts THEN
        PERFORM pipeline.record_attempt(v_job, 'exhausted', p_error);
        PERFORM pipeline.end_failed(v_job, v_job.crashes, v_job.attempts + 1, p_error);
        RETURN 'exhausted';
    END IF;
    PERFORM pipeline.record_attempt(v_job, 'retried', p_error);
    PERFORM pipeline.end_waiting(v_job, 'retryable', v_job.attempts + 1, v_job.crashes,
                                 now() + make_interval(secs => p_delay), 'backoff', p_error);
    RETURN 'retried';
END $$;
