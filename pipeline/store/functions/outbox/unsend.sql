-- What was marked sent did not reach the broker, or the broker no longer has it: send it again under a
-- new number, which voids the old message should it turn up after all. Rows that another transaction holds are left
-- as they are: pipeline.still_sent says which, so that the caller can ask again.
CREATE OR REPLACE FUNCTION pipeline.unsend(p_jobs uuid[], p_sends bigint[], p_reason text)
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_jobs uuid[];
BEGIN
    WITH held AS (
        SELECT j.id FROM pipeline.jobs j JOIN unnest(p_jobs, p_sends) AS a(id, send) ON a.id = j.id AND a.send = j.send
        WHERE j.status IN ('pending', 'retryable') FOR NO KEY UPDATE OF j SKIP LOCKED
    ), free AS (
        SELECT o.job_id FROM pipeline.outbox o JOIN held h ON h.id = o.job_id
        WHERE o.sent_at IS NOT NULL FOR UPDATE OF o SKIP LOCKED
    )
    SELECT array_agg(f.job_id) INTO v_jobs FROM free f;
    IF v_jobs IS NULL THEN RETURN 0; END IF;
    PERFORM pipeline.wait_again(v_jobs, p_reason);
    RETURN cardinality(v_jobs);
END $$;

-- Jobs whose message is void wait at the gate again. The caller holds their rows.
CREATE OR REPLACE FUNCTION pipeline.wait_again(p_jobs uuid[], p_reason text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pipeline.leave_places(p_jobs);
    UPDATE pipeline.jobs SET send = send + 1, updated_at = now() WHERE id = ANY (p_jobs);
    UPDATE pipeline.outbox SET sent_at = NULL, sent_by = NULL, reason = p_reason WHERE job_id = ANY (p_jobs);
    PERFORM pipeline.wake();
END $$;

-- Of these sends, the jobs that still wait on them.
CREATE OR REPLACE FUNCTION pipeline.still_sent(p_jobs uuid[], p_sends bigint[]) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
    SELECT j.id FROM unnest(p_jobs, p_sends) AS a(id, send) JOIN pipeline.jobs j ON j.id = a.id AND j.send = a.send
         JOIN pipeline.outbox o ON o.job_id = j.id AND o.sent_at IS NOT NULL
    WHERE j.status IN ('pending', 'retryable')
$$;
