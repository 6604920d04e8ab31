-- Lift a lane's pause. What it held goes out gradually, at the lane's rate, oldest first.
CREATE OR REPLACE FUNCTION pipeline_open_lane(p_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_lane lanes;
BEGIN
    SELECT * INTO v_lane FROM lanes WHERE name = p_name FOR UPDATE;
    UPDATE lanes SET paused_until = NULL, pause_reason = NULL WHERE name = p_name;
    UPDATE outbox o SET due_at = now() + make_interval(secs => coalesce((w.place - 1) / v_lane.rate, 0))
    FROM (SELECT job_id, row_number() OVER (ORDER BY priority DESC, seq) AS place FROM outbox
          WHERE lane = p_name AND sent_at IS NULL AND due_at IS NOT NULL AND reason = v_lane.pause_reason) w
    WHERE o.job_id = w.job_id;
    PERFORM pg_notify('pipeline_relay', '');
END $$;
