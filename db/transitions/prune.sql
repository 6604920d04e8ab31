-- Finished jobs and their history, oldest first, a small batch a call; with them complete batches that have no
-- jobs left, and workers that stopped. Children of open batches stay.
CREATE OR REPLACE FUNCTION pipeline_prune(p_older interval, p_most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_ids uuid[];
BEGIN
    SELECT array_agg(d.id) INTO v_ids FROM (
        SELECT j.id FROM jobs j
        WHERE j.id < pipeline_id_at(now() - p_older) AND j.completed_at < now() - p_older
          AND NOT EXISTS (SELECT 1 FROM batches b WHERE b.id = j.batch_id AND b.completed_at IS NULL)
        ORDER BY j.id LIMIT p_most FOR UPDATE SKIP LOCKED) d;
    DELETE FROM attempts WHERE job_id = ANY (v_ids);
    DELETE FROM jobs WHERE id = ANY (v_ids);
    DELETE FROM batches b WHERE b.completed_at < now() - p_older
        AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.batch_id = b.id);
    DELETE FROM workers w WHERE w.stopped_at < now() - p_older
        AND w.id NOT IN (SELECT j.locked_by FROM running_jobs j);
    RETURN coalesce(cardinality(v_ids), 0);
END $$;

-- The smallest id a job created at that moment can have: ids are in the order of time.
CREATE OR REPLACE FUNCTION pipeline_id_at(p_moment timestamptz) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM p_moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
