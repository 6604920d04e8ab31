-- Cancels a job that is not final. The fence of a running attempt is no longer valid: none of its later writes is kept,
-- and its worker is told with the next heartbeat. Returns true if this call cancelled the job.
CREATE OR REPLACE FUNCTION pipeline.cancel(p_id uuid, p_reason text DEFAULT 'cancelled by request')
RETURNS boolean LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT pipeline.cancel_many(ARRAY[p_id], p_reason) = 1
$$;

-- Many at once: their batches are counted and the relay is nudged once for all. Returns how many were cancelled.
CREATE OR REPLACE FUNCTION pipeline.cancel_many(p_ids uuid[], p_reason text DEFAULT 'cancelled by request')
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_job pipeline.jobs;
    v_ids uuid[];
BEGIN
    PERFORM 1 FROM pipeline.jobs j WHERE j.id = ANY (p_ids) AND j.completed_at IS NULL ORDER BY j.id FOR UPDATE;
    SELECT array_agg(j.id ORDER BY j.id) INTO v_ids
    FROM pipeline.jobs j WHERE j.id = ANY (p_ids) AND j.status IN ('pending', 'running', 'retryable');
    IF v_ids IS NULL THEN RETURN 0; END IF;
    FOR v_job IN SELECT j.* FROM pipeline.jobs j WHERE j.id = ANY (v_ids) ORDER BY j.id LOOP
        IF v_job.status <> 'running' THEN
            v_job.fence := v_job.fence + 1;
            v_job.locked_at := NULL;
            v_job.sent_at := (SELECT o.sent_at FROM pipeline.outbox o WHERE o.job_id = v_job.id);
        END IF;
        PERFORM pipeline.record_attempt(v_job, 'cancelled', p_reason);
    END LOOP;
    UPDATE pipeline.jobs SET status = 'cancelled', completed_at = now(), updated_at = now(), error_message = p_reason,
        fence = fence + CASE WHEN status = 'running' THEN 0 ELSE 1 END, next_retry_at = NULL, wait_reason = NULL
    WHERE id = ANY (v_ids);
    PERFORM pipeline.leave_places(v_ids);
    PERFORM pipeline.leave_outbox(v_ids);
    PERFORM pipeline.return_permits(v_ids);
    PERFORM pipeline.count_children(v_ids);
    PERFORM pipeline.wake();
    RETURN cardinality(v_ids);
END $$;
