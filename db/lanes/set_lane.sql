-- Give a lane its rate (calls a second, null for none) and its bucket. Its pause and its place in time stay.
CREATE OR REPLACE FUNCTION pipeline_set_lane(p_name text, p_rate double precision, p_burst double precision DEFAULT NULL)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO lanes (name, rate, burst) VALUES (p_name, p_rate, greatest(coalesce(p_burst, p_rate, 1), 1))
    ON CONFLICT (name) DO UPDATE SET rate = excluded.rate, burst = excluded.burst
    WHERE (lanes.rate, lanes.burst) IS DISTINCT FROM (excluded.rate, excluded.burst)
$$;
