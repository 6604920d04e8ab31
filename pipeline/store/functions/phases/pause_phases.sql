-- For operators: shuts the gate of one phase, of all phases of a workflow (p_phase null), or of all there are (p_workflow
-- null), until then; 'infinity': until it is resumed. What runs finishes its phase; everything else waits at no cost. A
-- longer pause stands, as with pipeline.pause. Returns the phases and until when each is paused now; no row if there is no
-- such phase.
CREATE OR REPLACE FUNCTION pipeline.pause_phases(p_workflow text, p_phase text, p_until timestamptz)
RETURNS TABLE (queue text, paused_until timestamptz)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE pipeline.phases ph SET paused_until = greatest(ph.paused_until, p_until) FROM (
        SELECT f.id FROM pipeline.phases f
        WHERE f.workflow = coalesce(p_workflow, f.workflow) AND f.phase = coalesce(p_phase, f.phase)
        ORDER BY f.id FOR NO KEY UPDATE) chosen
    WHERE ph.id = chosen.id RETURNING ph.queue, ph.paused_until
$$;

-- Ends every pause of one phase, of all phases of a workflow, or of all there are: an operator's, and one that an outside
-- system asked for. The relay sends what waits. Returns the phases and whether each was paused; no row if there is no such
-- phase.
CREATE OR REPLACE FUNCTION pipeline.resume_phases(p_workflow text, p_phase text)
RETURNS TABLE (queue text, was_paused boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY UPDATE pipeline.phases ph SET paused_until = NULL FROM (
        SELECT f.id, coalesce(f.paused_until > now(), false) AS paused FROM pipeline.phases f
        WHERE f.workflow = coalesce(p_workflow, f.workflow) AND f.phase = coalesce(p_phase, f.phase)
        ORDER BY f.id FOR NO KEY UPDATE) chosen
    WHERE ph.id = chosen.id RETURNING ph.queue, chosen.paused;
    PERFORM pipeline.wake();
END $$;
