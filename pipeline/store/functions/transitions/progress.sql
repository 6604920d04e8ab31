-- Fenced like every write of an attempt; it ends a row of waits. True: won. False: lost. Null: locked, ask again.
CREATE OR REPLACE FUNCTION pipeline.progress(p_id uuid, p_fence bigint, p_done integer, p_total integer)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_won boolean := pipeline.hold(p_id, p_fence);
BEGIN
    IF v_won THEN
        UPDATE pipeline.jobs SET progress_done = p_done, progress_total = p_total, waits = 0 WHERE id = p_id;
    END IF;
    RETURN v_won;
END $$;
