-- Hold every waiting job of a lane at the gate until then: no attempt spent, no thread held. A later moment
-- wins. Jobs whose message is out already ask for their turn, and are told the same.
CREATE OR REPLACE FUNCTION pipeline_pause_lane(p_name text, p_until timestamptz, p_reason text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lanes (name, paused_until, pause_reason) VALUES (p_name, p_until, p_reason)
    ON CONFLICT (name) DO UPDATE SET paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
    WHERE lanes.paused_until IS NULL OR lanes.paused_until < excluded.paused_until;
END $$;

-- Called by the gate. The rows wait for a time, like any other wait, so that nobody looks at them until then.
CREATE OR REPLACE FUNCTION pipeline_hold_lanes() RETURNS void LANGUAGE sql AS $$
    UPDATE outbox o SET due_at = l.paused_until, reason = l.pause_reason
    FROM lanes l WHERE l.paused_until > now() AND o.lane = l.name AND o.sent_at IS NULL AND o.due_at IS NULL
$$;
