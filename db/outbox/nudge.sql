-- Wake the relay if one of these queues has jobs waiting at the gate and room for them. A queue without
-- a pool is refilled when half of it is free, so that a busy system does not notify at every claim.
CREATE OR REPLACE FUNCTION pipeline_nudge(p_queues text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_phase phases;
BEGIN
    FOR v_phase IN
        SELECT * FROM phases ph WHERE ph.queue = ANY (p_queues) AND EXISTS (
            SELECT 1 FROM outbox o WHERE o.phase_id = ph.id AND o.sent_at IS NULL AND o.due_at IS NULL)
    LOOP
        IF pipeline_room(v_phase) >= (CASE WHEN v_phase.pool IS NULL THEN greatest(1, v_phase.queue_limit / 2) ELSE 1 END)
        THEN
            PERFORM pg_notify('pipeline_relay', '');
            RETURN;
        END IF;
    END LOOP;
END $$;
