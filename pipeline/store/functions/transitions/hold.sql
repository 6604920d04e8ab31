-- Whether the attempt still holds its job, and a promise that it does until this transaction ends: what is written
-- beside it (a checkpoint) is as fenced as a transition. True: won. False: lost. Null: locked, ask again.
CREATE OR REPLACE FUNCTION pipeline.hold(p_id uuid, p_fence bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_waits integer;
BEGIN
    SELECT waits INTO v_waits FROM pipeline.jobs WHERE id = p_id AND fence = p_fence AND status = 'running' FOR NO KEY UPDATE SKIP LOCKED;
    -- A checkpoint is progress: it ends a row of waits.
    UPDATE pipeline.jobs SET waits = 0 WHERE id = p_id AND v_waits > 0;
    RETURN CASE WHEN v_waits IS NOT NULL THEN true WHEN pipeline.not_held(p_id, p_fence) <> 'locked' THEN false END;
END $$;

-- Why a fenced step did not get its row: 'locked' (another transaction holds it; ask again), how the attempt ended if
-- it did (the answer to a step that is repeated after an unknown COMMIT), or 'lost'.
CREATE OR REPLACE FUNCTION pipeline.not_held(p_id uuid, p_fence bigint) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN EXISTS (SELECT 1 FROM pipeline.jobs WHERE id = p_id AND fence = p_fence AND status = 'running')
                THEN 'locked' ELSE pipeline.outcome(p_id, p_fence) END
$$;
