-- An outside system asked to be left alone for a while: the gate of the phase stays shut for every worker until
-- then. A later moment wins; an earlier one changes nothing.
CREATE OR REPLACE FUNCTION pipeline_pause(p_queue text, p_seconds double precision) RETURNS void LANGUAGE sql AS $$
    UPDATE phases SET paused_until = now() + make_interval(secs => p_seconds)
    WHERE queue = p_queue AND (paused_until IS NULL OR paused_until < now() + make_interval(secs => p_seconds))
$$;
