-- How many more messages of a phase may be in the broker: up to the queue limit, and for a phase with a pool as many as it
-- has free places, so that no message reaches a worker only to find the pool full; no more than its throttle lets through. None while the phase is paused.
-- The rows that are out include those of running jobs, which take no place in the queue; they are told apart only where
-- it matters.
CREATE OR REPLACE FUNCTION pipeline.capacity(p_phase pipeline.phases) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_room integer;
BEGIN
    IF p_phase.paused_until > now() THEN
        RETURN 0;
    END IF;
    SELECT p_phase.queue_limit - count(*) INTO v_room FROM (
        SELECT 1 FROM pipeline.outbox o WHERE o.phase_id = p_phase.id AND o.sent_at IS NOT NULL LIMIT p_phase.queue_limit) s;
    IF v_room <= 0 THEN
        SELECT p_phase.queue_limit - count(*) INTO v_room FROM (
            SELECT 1 FROM pipeline.outbox o WHERE o.phase_id = p_phase.id AND o.sent_at IS NOT NULL
            AND (SELECT j.status FROM pipeline.jobs j WHERE j.id = o.job_id) <> 'running' LIMIT p_phase.queue_limit) q;
    END IF;
    IF p_phase.throttle_count IS NOT NULL THEN v_room := least(v_room, pipeline.throttle_left(p_phase)); END IF;
    IF p_phase.pool IS NULL THEN RETURN v_room; END IF;
    RETURN least(v_room, (SELECT least(count(*) FILTER (WHERE p.job_id IS NULL AND p.number <= p_phase.pool),
                                       p_phase.pool - count(p.job_id))
                          FROM pipeline.places p WHERE p.phase_id = p_phase.id));
END $$;
