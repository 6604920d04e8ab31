-- Lift a rate limit's pause; if it was a breaker's, the next job may probe now. What it held goes out gradually, at the rate limit's rate, oldest first: by the gate, at its next look.
CREATE OR REPLACE FUNCTION pipeline.resume_rate_limit(p_name text)
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE pipeline.breakers SET open_until = now() WHERE name = p_name AND open_until > now() AND probe_by IS NULL;
    UPDATE pipeline.rate_limits SET paused_until = NULL, pause_reason = NULL WHERE name = p_name AND paused_until IS NOT NULL;
    SELECT pg_notify('pipeline_relay', '');
$$;
