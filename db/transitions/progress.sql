-- Fenced like every write of an attempt. Returns false when the attempt lost its job.
CREATE OR REPLACE FUNCTION pipeline_progress(p_id uuid, p_fence bigint, p_done integer, p_total integer)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE jobs SET progress_done = p_done, progress_total = p_total
    WHERE id = p_id AND fence = p_fence AND status = 'running';
    RETURN FOUND;
END $$;
