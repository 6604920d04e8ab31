-- Jobs vanish with all that belongs to them. A running attempt learns that it lost its job, and its message is
-- acknowledged; batches count the deleted like any other final child.
CREATE OR REPLACE FUNCTION pipeline.delete(p_jobs uuid[])
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_count integer;
BEGIN
    -- In the order of ids, as everywhere: two callers never wait for one another in a circle.
    PERFORM 1 FROM pipeline.jobs j WHERE j.id = ANY (p_jobs) ORDER BY j.id FOR UPDATE;
    PERFORM pipeline.cancel_many(p_jobs, 'deleted');
    PERFORM pipeline.forget(p_jobs);
    DELETE FROM pipeline.jobs WHERE id = ANY (p_jobs);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END $$;
