-- Any job that is not final. A running attempt loses its fence's ground at once: none of its later writes
-- is kept, and its worker hears of it at the next heartbeat. Returns true if this call cancelled the job.
CREATE OR REPLACE FUNCTION pipeline_cancel(p_id uuid, p_reason text DEFAULT 'cancelled by request')
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_job jobs;
BEGIN
    SELECT * INTO v_job FROM jobs WHERE id = p_id AND status IN ('pending', 'running', 'retryable') FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    IF v_job.status <> 'running' THEN
        v_job.fence := v_job.fence + 1;
        v_job.locked_at := NULL;
        v_job.sent_at := (SELECT o.sent_at FROM outbox o WHERE o.job_id = p_id);
    END IF;
    PERFORM pipeline_note(v_job, 'cancelled', p_reason);
    UPDATE jobs SET status = 'cancelled', completed_at = now(), updated_at = now(), error_message = p_reason,
        fence = v_job.fence, next_retry_at = NULL, wait_reason = NULL, locked_by = NULL, locked_at = NULL,
        heartbeat_at = NULL, sent_at = NULL, delivery = NULL, slot = NULL, isolated = NULL
    WHERE id = p_id;
    DELETE FROM outbox WHERE job_id = p_id;
    PERFORM pipeline_count_children(ARRAY[p_id]);
    PERFORM pipeline_nudge(ARRAY[v_job.workflow || '.' || v_job.phase]);
    RETURN true;
END $$;
