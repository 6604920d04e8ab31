-- How many more messages of a phase may be in the broker: the queue limit, and for a phase with a pool
-- no more than it has free processors, so that no message reaches a worker only to find the pool full.
-- None while the phase is paused.
CREATE OR REPLACE FUNCTION pipeline_room(p_phase phases) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_sent integer;
BEGIN
    IF p_phase.paused_until > now() THEN
        RETURN 0;
    END IF;
    SELECT count(*) INTO v_sent FROM (
        SELECT 1 FROM outbox o WHERE o.phase_id = p_phase.id AND o.sent_at IS NOT NULL LIMIT p_phase.queue_limit) s;
    IF p_phase.pool IS NULL OR p_phase.pool - v_sent <= 0 THEN
        RETURN least(p_phase.queue_limit, coalesce(p_phase.pool, p_phase.queue_limit)) - v_sent;
    END IF;
    RETURN least(p_phase.queue_limit - v_sent, p_phase.pool - v_sent - (
        SELECT count(*) FROM jobs j
        WHERE j.workflow = p_phase.workflow AND j.phase = p_phase.phase AND j.slot IS NOT NULL)::integer);
END $$;
