-- The attempt ended without an answer: its isolated child died, its worker's lock is free, or its heartbeat
-- is stale. One crash of the budget, if p_counts; the last one makes it a poison pill.
-- Verdicts: p_outcome ('crashed' or 'stale'), 'poisoned', 'lost', 'locked'.
CREATE OR REPLACE FUNCTION pipeline.crash(p_id uuid, p_fence bigint, p_outcome text, p_error text, p_counts boolean)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_job pipeline.jobs;
    v_crashes integer;
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs WHERE id = p_id AND fence = p_fence AND status = 'running'
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN pipeline.not_held(p_id, p_fence); END IF;
    v_crashes := v_job.crashes + CASE WHEN p_counts THEN 1 ELSE 0 END;
    IF p_counts AND v_crashes >= (SELECT max_crashes FROM pipeline.phases WHERE workflow = v_job.workflow AND phase = v_job.phase) THEN
        PERFORM pipeline.record_attempt(v_job, 'poisoned', p_error);
        PERFORM pipeline.end_failed(v_job, v_crashes, v_job.attempts,
                                    format('poison pill after %s crashes: %s', v_crashes, p_error));
        RETURN 'poisoned';
    END IF;
    PERFORM pipeline.record_attempt(v_job, p_outcome, p_error);
    PERFORM pipeline.end_waiting(v_job, 'pending', v_job.attempts, v_crashes, NULL, NULL, p_error);
    RETURN p_outcome;
END $$;
