-- Give a rate limit its rate (calls a second, null for none) and its bucket. Its pause and its place in time stay. Nothing is
-- locked if nothing changes: an application may do this at the beginning of a long transaction.
CREATE OR REPLACE FUNCTION pipeline.set_rate_limit(p_name text, p_rate double precision, p_burst double precision DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_burst double precision := greatest(coalesce(p_burst, p_rate, 1), 1);
BEGIN
    IF EXISTS (SELECT 1 FROM pipeline.rate_limits WHERE name = p_name AND rate_is_set AND (rate, burst) IS NOT DISTINCT FROM (p_rate, v_burst)) THEN
        RETURN;
    END IF;
    INSERT INTO pipeline.rate_limits (name, rate, burst, rate_is_set) VALUES (p_name, p_rate, v_burst, true)
    ON CONFLICT (name) DO UPDATE SET rate = excluded.rate, burst = excluded.burst, rate_is_set = true;
    -- Those who wait may go sooner now.
    PERFORM pg_notify('pipeline_relay', '');
END $$;

-- The rate that the code declares, for a name or for the names that are made from a template; null: none. What was set stays in
-- force.
CREATE OR REPLACE FUNCTION pipeline.declare_rate_limit(p_name text, p_rate double precision, p_burst double precision)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_burst double precision := greatest(coalesce(p_burst, p_rate, 1), 1);
BEGIN
    INSERT INTO pipeline.rate_limits AS l (name, rate, burst, declared_rate, declared_burst)
    VALUES (p_name, p_rate, v_burst, p_rate, CASE WHEN p_rate IS NOT NULL THEN v_burst END)
    ON CONFLICT (name) DO UPDATE SET declared_rate = excluded.declared_rate, declared_burst = excluded.declared_burst,
        rate = CASE WHEN l.rate_is_set THEN l.rate ELSE excluded.rate END,
        burst = CASE WHEN l.rate_is_set THEN l.burst ELSE excluded.burst END;
END $$;

-- The rate that the code declares is in force again. False if there is no such rate limit.
CREATE OR REPLACE FUNCTION pipeline.unset_rate_limit(p_name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE pipeline.rate_limits SET rate = declared_rate, burst = coalesce(declared_burst, 1), rate_is_set = false WHERE name = p_name;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pg_notify('pipeline_relay', '');
    RETURN true;
END $$;
