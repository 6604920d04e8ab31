-- For operators: a worker takes nothing new from now on (p_drain), and finishes what it has; or takes jobs again. It is told
-- at once. False if no such worker is alive.
CREATE OR REPLACE FUNCTION pipeline.drain(p_worker text, p_drain boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_no integer;
BEGIN
    UPDATE pipeline.workers SET draining_at = CASE WHEN p_drain THEN coalesce(draining_at, now()) END
    WHERE id = p_worker AND stopped_at IS NULL AND pipeline.alive(id) RETURNING no INTO v_no;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pg_notify('pipeline_worker', v_no::text);
    RETURN true;
END $$;
