-- The attempt ended without an answer: its isolated child died, its worker's lock is free, or its heartbeat
-- is stale. One crash of the budget, if p_counts; the last one makes it a poison pill.
-- Verdicts: p_outcome ('crashed' or 'stale'), 'poisoned', 'lost', 'locked'.
CREATE OR REPLACE FUNCTION pipeline_crash(p_id uuid, p_fence bigint, p_outcome text, p_error text, p_counts boolean)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_job jobs;
    v_crashes integer;
BEGIN
    SELECT * INTO v_job FROM jobs WHERE id = p_id AND fence = p_fence AND status = 'running'
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN pipeline_not_held(p_id, p_fence); END IF;
    v_crashes := v_job.crashes + CASE WHEN p_counts THEN 1 ELSE 0 END;
    IF p_counts AND v_crashes >= (SELECT max_crashes FROM phases WHERE workflow = v_job.workflow AND phase = v_job.phase) THEN
        PERFORM pipeline_note(v_job, 'poisoned', p_error);
        PERFORM pipeline_end_failed(v_job, v_crashes, v_job.attempts,
                                    format('poison pill after %s crashes: %s', v_crashes, p_error));
        RETURN 'poisoned';
    END IF;
    PERFORM pipeline_note(v_job, p_outcome, p_error);
    PERFORM pipeline_end_waiting(v_job, 'pending', v_job.attempts, v_crashes, NULL, NULL, p_error);
    RETURN p_outcome;
END $$;
