-- A failed job starts its phase again with fresh budgets, at once or when p_due has come. Returns false if the job
-- is not failed (any more), if p_send is given and is not the send it failed with, or if its key was free since it failed
-- (p_unique of pipeline.submit) and another job that has not ended has it now.
CREATE OR REPLACE FUNCTION pipeline.replay(p_id uuid, p_send bigint DEFAULT NULL, p_due timestamptz DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_job pipeline.jobs;
    v_reason text := CASE WHEN p_due > now() THEN 'replay' END;
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs
    WHERE id = p_id AND status = 'failed' AND (p_send IS NULL OR send = p_send) FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    IF v_job.idempotency_key IS NOT NULL AND NOT pipeline.take_key_again(v_job) THEN RETURN false; END IF;
    UPDATE pipeline.jobs SET status = 'pending', attempts = 0, crashes = 0, waits = 0, send = send + 1, completed_at = NULL,
        error_message = NULL, ready_at = now(), updated_at = now(), next_retry_at = p_due, wait_reason = v_reason
    WHERE id = p_id;
    PERFORM pipeline.enqueue(p_id, v_job.workflow, v_job.phase, v_job.priority, p_due, v_reason);
    RETURN true;
END $$;

-- Failed jobs start again in the order given, p_per_second of them a second (null: all at once). Returns those
-- that did.
CREATE OR REPLACE FUNCTION pipeline.replay_many(p_ids uuid[], p_per_second double precision DEFAULT NULL)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_id uuid;
    v_place integer := 0;
BEGIN
    -- Locked in the order of ids, like everywhere: two callers never wait for one another in a circle.
    PERFORM 1 FROM pipeline.jobs WHERE id = ANY (p_ids) AND status = 'failed' ORDER BY id FOR UPDATE;
    FOREACH v_id IN ARRAY p_ids LOOP
        IF pipeline.replay(v_id, NULL, now() + make_interval(secs => v_place / p_per_second)) THEN
            v_place := v_place + 1;
            RETURN NEXT v_id;
        END IF;
    END LOOP;
END $$;
