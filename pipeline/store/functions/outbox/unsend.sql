-- What was marked sent did not reach the broker, or the broker no longer has it: send it again under a
-- new number, which voids the old message should it turn up after all. Rows that another transaction holds are left
-- as they are: pipeline.still_sent says which, so that the caller can ask again.
CREATE OR REPLACE FUNCTION pipeline.unsend(p_jobs uuid[], p_sends bigint[], p_reason text)
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_count integer;
BEGIN
    WITH held AS (
        SELECT j.id FROM pipeline.jobs j JOIN unnest(p_jobs, p_sends) AS a(id, send) ON a.id = j.id AND a.send = j.send
        WHERE j.status IN ('pending', 'retryable') FOR NO KEY UPDATE OF j SKIP LOCKED
    ), free AS (
        SELECT o.job_id FROM pipeline.outbox o JOIN held h ON h.id = o.job_id
        WHERE o.sent_at IS NOT NULL FOR UPDATE OF o SKIP LOCKED
    ), back AS (
        UPDATE pipeline.outbox o SET sent_at = NULL, sent_by = NULL, reason = p_reason
        FROM free f WHERE o.job_id = f.job_id RETURNING o.job_id
    ), voided AS (
        UPDATE pipeline.jobs j SET send = j.send + 1, updated_at = now() FROM back b WHERE j.id = b.job_id RETURNING 1
    )
    SELECT count(*) INTO v_count FROM voided;
    IF v_count > 0 THEN
        PERFORM pg_notify('pipeline_relay', '');
    END IF;
    RETURN v_count;
END $$;

-- Of these sends, the jobs that still wait on them.
CREATE OR REPLACE FUNCTION pipeline.still_sent(p_jobs uuid[], p_sends bigint[]) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
    SELECT j.id FROM unnest(p_jobs, p_sends) AS a(id, send) JOIN pipeline.jobs j ON j.id = a.id AND j.send = a.send
         JOIN pipeline.outbox o ON o.job_id = j.id AND o.sent_at IS NOT NULL
    WHERE j.status IN ('pending', 'retryable')
$$;
