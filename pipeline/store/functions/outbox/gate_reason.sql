-- Why jobs wait at the gate of this phase now: 'paused', 'pool_full', 'queue_full', or 'sending' when there is room and
-- the relay has only to come by.
CREATE OR REPLACE FUNCTION pipeline.gate_reason(p_phase pipeline.phases) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_phase.paused_until > now() THEN 'paused'
                WHEN pipeline.capacity(p_phase) > 0 THEN 'sending'
                WHEN p_phase.pool IS NOT NULL AND (NOT pipeline.within_pool(p_phase.id, p_phase.pool) OR NOT EXISTS (
                    SELECT 1 FROM pipeline.places p WHERE p.phase_id = p_phase.id AND p.job_id IS NULL AND p.number <= p_phase.pool))
                THEN 'pool_full'
                ELSE 'queue_full' END
$$;
