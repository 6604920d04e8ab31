-- Give a rate limit its rate (calls a second, null for none) and its bucket. Its pause and its place in time stay. Nothing is
-- locked if nothing changes: an application may do this at the beginning of a long transaction.
CREATE OR REPLACE FUNCTION pipeline.set_rate_limit(p_name text, p_rate double precision, p_burst double precision DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_burst double precision := greatest(coalesce(p_burst, p_rate, 1), 1);
BEGIN
    IF EXISTS (SELECT 1 FROM pipeline.rate_limits WHERE name = p_name AND (rate, burst) IS NOT DISTINCT FROM (p_rate, v_burst)) THEN
        RETURN;
    END IF;
    INSERT INTO pipeline.rate_limits (name, rate, burst) VALUES (p_name, p_rate, v_burst)
    ON CONFLICT (name) DO UPDATE SET rate = excluded.rate, burst = excluded.burst;
    -- Those who wait may go sooner now.
    PERFORM pg_notify('pipeline_relay', '');
END $$;

-- Whether jobs that are submitted to a rate limit wait for it at the gate.
CREATE OR REPLACE FUNCTION pipeline.has_rate(p_rate_limit text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM pipeline.rate_limits WHERE name = p_rate_limit AND rate IS NOT NULL)
$$;
