-- Whether the attempt still holds its job, and a promise that it does until this transaction ends: what is
-- written beside it (a checkpoint) is as fenced as a transition.
CREATE OR REPLACE FUNCTION pipeline_hold(p_id uuid, p_fence bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM jobs WHERE id = p_id AND fence = p_fence AND status = 'running' FOR NO KEY UPDATE;
    RETURN FOUND;
END $$;
