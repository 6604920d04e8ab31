-- A failed job starts its phase again with fresh budgets. Returns false if the job is not failed (any more),
-- or if p_send is given and is not the send it failed with.
CREATE OR REPLACE FUNCTION pipeline_replay(p_id uuid, p_send bigint DEFAULT NULL) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_job jobs;
BEGIN
    SELECT * INTO v_job FROM jobs
    WHERE id = p_id AND status = 'failed' AND (p_send IS NULL OR send = p_send) FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE jobs SET status = 'pending', attempts = 0, crashes = 0, send = send + 1, completed_at = NULL,
        error_message = NULL, ready_at = now(), updated_at = now()
    WHERE id = p_id;
    PERFORM pipeline_wait(p_id, v_job.workflow, v_job.phase, v_job.priority, NULL, NULL);
    RETURN true;
END $$;
