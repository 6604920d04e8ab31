-- What was marked sent did not reach the broker, or the broker no longer has it: send it again under a
-- new number, which voids the old message should it turn up after all.
CREATE OR REPLACE FUNCTION pipeline_unsend(p_jobs uuid[], p_sends bigint[], p_reason text)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_count integer;
BEGIN
    WITH held AS (
        SELECT j.id FROM jobs j JOIN unnest(p_jobs, p_sends) AS a(id, send) ON a.id = j.id AND a.send = j.send
        WHERE j.status IN ('pending', 'retryable') ORDER BY j.id FOR UPDATE OF j
    ), back AS (
        UPDATE outbox o SET sent_at = NULL, sent_by = NULL, reason = p_reason
        FROM held h WHERE o.job_id = h.id AND o.sent_at IS NOT NULL RETURNING o.job_id
    ), voided AS (
        UPDATE jobs j SET send = j.send + 1, updated_at = now() FROM back b WHERE j.id = b.job_id RETURNING 1
    )
    SELECT count(*) INTO v_count FROM voided;
    IF v_count > 0 THEN
        PERFORM pg_notify('pipeline_relay', '');
    END IF;
    RETURN v_count;
END $$;
