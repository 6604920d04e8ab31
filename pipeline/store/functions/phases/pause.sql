-- An operator shuts the gate of a workflow's phases, or of one (p_phase null: of all) until then; 'infinity': until it is
-- resumed. What runs finishes its phase; everything else waits at no cost. A later moment wins, as with pipeline.pause.
-- Returns the phases, each with the moment until which it is paused now; none if there is no such phase.
CREATE OR REPLACE FUNCTION pipeline.pause_phases(p_workflow text, p_phase text, p_until timestamptz)
RETURNS TABLE (queue text, paused_until timestamptz)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE pipeline.phases ph SET paused_until = greatest(ph.paused_until, p_until) FROM (
        SELECT f.id FROM pipeline.phases f
        WHERE f.workflow = p_workflow AND f.phase = coalesce(p_phase, f.phase)
        ORDER BY f.id FOR NO KEY UPDATE) chosen
    WHERE ph.id = chosen.id RETURNING ph.queue, ph.paused_until
$$;

-- End every pause of a workflow's phases, or of one: an operator's, and one that an outside system asked for. The relay
-- sends what waits. Returns the phases, each with whether it was paused; none if there is no such phase.
CREATE OR REPLACE FUNCTION pipeline.resume_phases(p_workflow text, p_phase text)
RETURNS TABLE (queue text, was_paused boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY UPDATE pipeline.phases ph SET paused_until = NULL FROM (
        SELECT f.id, coalesce(f.paused_until > now(), false) AS paused FROM pipeline.phases f
        WHERE f.workflow = p_workflow AND f.phase = coalesce(p_phase, f.phase)
        ORDER BY f.id FOR NO KEY UPDATE) chosen
    WHERE ph.id = chosen.id RETURNING ph.queue, chosen.paused;
    PERFORM pipeline.wake();
END $$;
