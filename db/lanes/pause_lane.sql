-- Hold every waiting job of a lane at the gate until then: no attempt spent, no thread held. A later moment
-- wins. Jobs whose message is out already ask for their turn, and are told the same. Nothing is locked if nothing
-- changes: everybody who calls the outside system passes by this row.
CREATE OR REPLACE FUNCTION pipeline_pause_lane(p_name text, p_until timestamptz, p_reason text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM lanes WHERE name = p_name AND paused_until >= p_until) THEN RETURN; END IF;
    INSERT INTO lanes (name, paused_until, pause_reason) VALUES (p_name, p_until, p_reason)
    ON CONFLICT (name) DO UPDATE SET paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
    WHERE lanes.paused_until IS NULL OR lanes.paused_until < excluded.paused_until;
END $$;

-- Called by the gate: what waits for room in a paused lane waits for the lane instead, so that nobody looks at it until
-- the lane is open. Those who wait for its rate do so already.
CREATE OR REPLACE FUNCTION pipeline_hold_lanes() RETURNS void LANGUAGE sql AS $$
    UPDATE outbox o SET due_at = 'infinity', reason = (SELECT l.pause_reason FROM lanes l WHERE l.name = o.lane)
    WHERE o.job_id = ANY (ARRAY(
        SELECT w.job_id FROM outbox w
        WHERE w.lane = ANY (ARRAY(SELECT l.name FROM lanes l WHERE l.paused_until > now()))
            AND w.sent_at IS NULL AND w.due_at IS NULL FOR UPDATE SKIP LOCKED))
$$;
