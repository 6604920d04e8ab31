-- For operators: another pool or another rate than the code declares, from now on, until it is taken away again (p_set
-- false). A deploy leaves it. Null: no limit. What runs beyond a smaller pool finishes its phase. False if there is no such
-- phase.
CREATE OR REPLACE FUNCTION pipeline.set_pool(p_workflow text, p_phase text, p_pool integer, p_set boolean DEFAULT true)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_id integer;
    v_pool integer;
BEGIN
    UPDATE pipeline.phases ph SET pool = CASE WHEN p_set THEN p_pool ELSE ph.declared_pool END, pool_is_set = p_set
    WHERE ph.workflow = p_workflow AND ph.phase = p_phase AND ph.position > 0 RETURNING ph.id, ph.pool INTO v_id, v_pool;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pipeline.set_places(v_id, v_pool);
    PERFORM pipeline.wake();
    RETURN true;
END $$;

-- At most p_count messages in p_seconds.
CREATE OR REPLACE FUNCTION pipeline.set_rate(
    p_workflow text, p_phase text, p_count integer, p_seconds double precision, p_set boolean DEFAULT true)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- What was sent under the old rate does not count against the new one.
    UPDATE pipeline.phases ph SET
        throttle_count = CASE WHEN p_set THEN p_count ELSE ph.declared_throttle_count END,
        throttle_seconds = CASE WHEN p_set THEN p_seconds ELSE ph.declared_throttle_seconds END,
        throttle_from = NULL, throttle_used = 0, rate_is_set = p_set
    WHERE ph.workflow = p_workflow AND ph.phase = p_phase AND ph.position > 0;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pipeline.wake();
    RETURN true;
END $$;
