-- Lift a lane's pause. What it held goes out gradually, at the lane's rate, oldest first: by the gate, at its next look.
CREATE OR REPLACE FUNCTION pipeline_open_lane(p_name text) RETURNS void LANGUAGE sql AS $$
    UPDATE lanes SET paused_until = NULL, pause_reason = NULL WHERE name = p_name AND paused_until IS NOT NULL;
    SELECT pg_notify('pipeline_relay', '');
$$;
