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

-- Those of these attempts that hold their jobs, which stay theirs until this transaction ends. The others lost theirs, or
-- another transaction holds the row: each is told so when it asks by itself.
CREATE OR REPLACE FUNCTION pipeline.hold_all(p_ids uuid[], p_fences bigint[]) RETURNS SETOF uuid
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT j.id, j.fence, j.status FROM pipeline.jobs j WHERE j.id = ANY (p_ids) FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT h.id FROM unnest(p_ids, p_fences) AS a(id, fence) JOIN held h ON h.id = a.id AND h.fence = a.fence
    WHERE h.status = 'running';
END $$;

-- Why a fenced step did not get its row: 'locked' (another transaction holds it; ask again), how the attempt ended if
-- it did (the answer to a step that is repeated after an unknown COMMIT), or 'lost'.
CREATE OR REPLACE FUNCTION pipeline.not_held(p_id uuid, p_fence bigint) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN EXISTS (SELECT 1 FROM pipeline.jobs WHERE id = p_id AND fence = p_fence AND status = 'running')
                THEN 'locked' ELSE pipeline.outcome(p_id, p_fence) END
$$;
