-- Hold every waiting job of a rate limit at the gate until then: no attempt spent, no thread held. A later moment
-- wins. Jobs whose message was sent already ask for a permit, and are told the same. Nothing is locked if nothing
-- changes: everybody who calls the outside system passes by this row.
CREATE OR REPLACE FUNCTION pipeline.pause_rate_limit(p_name text, p_until timestamptz, p_reason text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM pipeline.rate_limits WHERE name = p_name AND paused_until >= p_until) THEN RETURN; END IF;
    INSERT INTO pipeline.rate_limits (name, paused_until, pause_reason) VALUES (p_name, p_until, p_reason)
    ON CONFLICT (name) DO UPDATE SET paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
    WHERE rate_limits.paused_until IS NULL OR rate_limits.paused_until < excluded.paused_until;
END $$;

-- Called by the gate: what waits for capacity under a paused rate limit waits for the rate limit instead, so that nobody
-- looks at it until the rate limit is open. Those who wait for its rate do so already.
CREATE OR REPLACE FUNCTION pipeline.hold_rate_limited() RETURNS void LANGUAGE sql AS $$
    UPDATE pipeline.outbox o SET due_at = 'infinity', reason = (SELECT l.pause_reason FROM pipeline.rate_limits l WHERE l.name = o.rate_limit)
    WHERE o.job_id = ANY (ARRAY(
        SELECT w.job_id FROM pipeline.outbox w
        WHERE w.rate_limit = ANY (ARRAY(SELECT l.name FROM pipeline.rate_limits l WHERE l.paused_until > now()))
            AND w.sent_at IS NULL AND w.due_at IS NULL FOR UPDATE SKIP LOCKED))
$$;
