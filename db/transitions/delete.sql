-- Jobs vanish with all that belongs to them. A running attempt learns that it lost its job, and its message is
-- acknowledged; batches count the deleted like any other final child.
CREATE OR REPLACE FUNCTION pipeline_delete(p_jobs uuid[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_queues text[];
    v_count integer;
BEGIN
    PERFORM 1 FROM jobs j WHERE j.id = ANY (p_jobs) ORDER BY j.id FOR UPDATE;
    SELECT array_agg(DISTINCT j.workflow || '.' || j.phase) INTO v_queues FROM jobs j
    WHERE j.id = ANY (p_jobs) AND j.completed_at IS NULL;
    UPDATE jobs SET status = 'cancelled', completed_at = now(), next_retry_at = NULL, locked_by = NULL,
        locked_at = NULL, heartbeat_at = NULL, slot = NULL
    WHERE id = ANY (p_jobs) AND completed_at IS NULL;
    PERFORM pipeline_count_children(p_jobs);
    DELETE FROM outbox WHERE job_id = ANY (p_jobs);
    DELETE FROM attempts WHERE job_id = ANY (p_jobs);
    DELETE FROM jobs WHERE id = ANY (p_jobs);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    PERFORM pipeline_nudge(v_queues);
    RETURN v_count;
END $$;
