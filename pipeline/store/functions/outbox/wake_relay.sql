-- Wake the relay if one of these queues has a pool, jobs waiting at the gate and a free processor. (A queue
-- without a pool is refilled by the relay at its own pace: notifying at every claim would cost more.)
CREATE OR REPLACE FUNCTION pipeline.wake_relay(p_queues text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_phase pipeline.phases;
BEGIN
    FOR v_phase IN SELECT * FROM pipeline.phases ph WHERE ph.queue = ANY (p_queues) AND ph.pool IS NOT NULL LOOP
        IF pipeline.has_waiting(v_phase.id) AND pipeline.capacity(v_phase) > 0 THEN
            PERFORM pg_notify('pipeline_relay', '');
            RETURN;
        END IF;
    END LOOP;
END $$;
