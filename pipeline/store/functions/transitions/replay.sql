-- A failed or cancelled job starts its phase again with fresh budgets, at once or when p_due has come, and with p_body in
-- place of its body if that is given. One that was cancelled while it waited for an event or for children waits for them
-- again. Returns false if the job is neither (any more), if p_send is given and the job did
-- not fail with it, or if its key was free since it ended (p_unique of pipeline.submit) and another job that has not
-- ended has it now.
CREATE OR REPLACE FUNCTION pipeline.replay(p_id uuid, p_send bigint DEFAULT NULL, p_due timestamptz DEFAULT NULL, p_body jsonb DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_job pipeline.jobs;
    v_reason text := CASE WHEN p_due > now() THEN 'replay' END;
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs
    WHERE id = p_id AND (status = 'failed' AND (p_send IS NULL OR send = p_send) OR status = 'cancelled' AND p_send IS NULL) FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    IF p_body IS NOT NULL AND pipeline.wrong_body(p_body, 65536) THEN
        PERFORM pipeline.refuse_body(p_body, 1);
    END IF;
    IF v_job.idempotency_key IS NOT NULL AND NOT pipeline.take_key_again(v_job) THEN RETURN false; END IF;
    UPDATE pipeline.jobs SET status = 'pending', attempts = 0, crashes = 0, waits = 0, send = send + 1, completed_at = NULL,
        error_message = NULL, ready_at = now(), updated_at = now(), next_retry_at = p_due, wait_reason = v_reason,
        body = coalesce(p_body, body),
        -- Where its name was made from the old body, it is made from the new one.
        rate_limit = CASE WHEN p_body IS NOT NULL AND rate_limit = (pipeline.limit_of(v_job.workflow, v_job.phase, v_job.body))
                          THEN pipeline.limit_of(v_job.workflow, v_job.phase, p_body) ELSE rate_limit END
    WHERE id = p_id;
    PERFORM pipeline.enqueue(p_id, v_job.workflow, v_job.phase, v_job.priority, p_due, v_reason);
    IF v_job.waited_for IS NOT NULL THEN
        PERFORM pipeline.wait_once_more(v_job);
    END IF;
    RETURN true;
END $$;

-- Failed and cancelled jobs start again in the order given, p_per_second of them a second (null: all at once). Returns those
-- that did.
CREATE OR REPLACE FUNCTION pipeline.replay_many(p_ids uuid[], p_per_second double precision DEFAULT NULL)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_id uuid;
    v_place integer := 0;
BEGIN
    -- Locked in the order of ids, like everywhere: two callers never wait for one another in a circle.
    PERFORM 1 FROM pipeline.jobs WHERE id = ANY (p_ids) AND status IN ('failed', 'cancelled') ORDER BY id FOR UPDATE;
    FOREACH v_id IN ARRAY p_ids LOOP
        IF pipeline.replay(v_id, NULL, now() + make_interval(secs => v_place / p_per_second)) THEN
            v_place := v_place + 1;
            RETURN NEXT v_id;
        END IF;
    END LOOP;
END $$;
