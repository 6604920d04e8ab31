-- Cancels a job that is not final. The fence of a running attempt is no longer valid: none of its later writes is kept,
-- and its worker is told with the next heartbeat. Returns true if this call cancelled the job.
CREATE OR REPLACE FUNCTION pipeline.cancel(p_id uuid, p_reason text DEFAULT 'cancelled by request')
RETURNS boolean LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT pipeline.cancel_many(ARRAY[p_id], p_reason) = 1
$$;

-- Many at once, with the children that they wait for. Returns how many were cancelled, without those children.
CREATE OR REPLACE FUNCTION pipeline.cancel_many(p_ids uuid[], p_reason text DEFAULT 'cancelled by request')
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_ids uuid[];
    v_children uuid[];
BEGIN
    PERFORM 1 FROM pipeline.jobs j WHERE j.id = ANY (p_ids) AND j.completed_at IS NULL ORDER BY j.id FOR UPDATE;
    SELECT array_agg(j.id ORDER BY j.id) INTO v_ids
    FROM pipeline.jobs j WHERE j.id = ANY (p_ids) AND j.status IN ('pending', 'running', 'retryable');
    IF v_ids IS NULL THEN RETURN 0; END IF;
    INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, due_at, sent_at, started_at, finished_at, phase, outcome, worker,
                          wait_reason, error)
    SELECT j.id, j.fence + CASE WHEN j.status = 'running' THEN 0 ELSE 1 END, j.attempts + 1, j.ready_at, j.next_retry_at,
           CASE WHEN j.status = 'running' THEN j.sent_at ELSE o.sent_at END, j.locked_at, now(), j.phase, 'cancelled', j.locked_by,
           j.wait_reason, left(p_reason, 20000)
    FROM pipeline.jobs j LEFT JOIN pipeline.outbox o ON o.job_id = j.id WHERE j.id = ANY (v_ids);
    UPDATE pipeline.jobs SET status = 'cancelled', completed_at = now(), updated_at = now(), error_message = p_reason,
        fence = fence + CASE WHEN status = 'running' THEN 0 ELSE 1 END, next_retry_at = NULL, wait_reason = NULL,
        -- Nobody has answered: a replay asks again (pipeline.wait_once_more).
        waited_for = (SELECT o.waits_for FROM pipeline.outbox o WHERE o.job_id = jobs.id)
    WHERE id = ANY (v_ids);
    PERFORM pipeline.leave_places(v_ids);
    PERFORM pipeline.leave_outbox(v_ids);
    PERFORM pipeline.return_permits(v_ids);
    PERFORM pipeline.count_children(v_ids);
    PERFORM pipeline.submit_hooks(v_ids, 'cancelled');
    v_children := pipeline.children_of(v_ids);
    IF v_children IS NOT NULL THEN
        PERFORM pipeline.cancel_many(v_children, 'the job that waited for it was cancelled');
    END IF;
    PERFORM pipeline.wake();
    RETURN cardinality(v_ids);
END $$;
