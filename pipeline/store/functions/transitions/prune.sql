-- Finished jobs with their history, keys and tags, a small batch a call, the oldest of each phase first; with the last batch also
-- complete batches that have no jobs left, moments of keys that have passed, and workers that stopped. Failed jobs stay until somebody decides, unless
-- p_failed says for how long. Children of open batches stay, and of a job that has not ended or may be replayed; what somebody
-- has locked stays until next time.
CREATE OR REPLACE FUNCTION pipeline.prune(p_older interval, p_most integer, p_failed interval DEFAULT NULL)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_workflow text := '';
    v_rest text := '';
    v_age interval;
    v_some uuid[];
    v_ids uuid[] := '{}';
BEGIN
    -- From one phase and status to the next through the index of jobs at rest: those that stay cost nothing.
    WHILE cardinality(v_ids) < p_most LOOP
        SELECT j.workflow, j.rest INTO v_workflow, v_rest FROM pipeline.jobs j
        WHERE j.rest IS NOT NULL AND (j.workflow, j.rest) > (v_workflow, v_rest) ORDER BY j.workflow, j.rest LIMIT 1;
        EXIT WHEN NOT FOUND;
        v_age := CASE split_part(v_rest, ':', 2) WHEN 'succeeded' THEN p_older WHEN 'cancelled' THEN p_older
                                                 WHEN 'failed' THEN p_failed END;
        CONTINUE WHEN v_age IS NULL;
        SELECT array_agg(d.id) INTO v_some FROM (
            SELECT j.id FROM pipeline.jobs j
            WHERE j.workflow = v_workflow AND j.rest = v_rest AND j.id < pipeline.id_at(now() - v_age)
              AND j.completed_at < now() - v_age
              AND NOT EXISTS (SELECT 1 FROM pipeline.batches b LEFT JOIN pipeline.jobs p ON p.id = b.parent_job
                              WHERE b.id = j.batch_id AND (
                                  b.completed_at IS NULL OR (p.id IS NOT NULL AND (p.completed_at IS NULL OR p.status = 'failed'))))
            ORDER BY j.id LIMIT p_most - cardinality(v_ids) FOR UPDATE SKIP LOCKED) d;
        v_ids := v_ids || v_some;
    END LOOP;
    PERFORM pipeline.forget(v_ids);
    DELETE FROM pipeline.jobs WHERE id = ANY (v_ids);
    IF cardinality(v_ids) < p_most THEN
        DELETE FROM pipeline.batches WHERE id IN (
            SELECT b.id FROM pipeline.batches b WHERE b.id < pipeline.id_at(now() - p_older) AND b.completed_at < now() - p_older
              AND NOT EXISTS (SELECT 1 FROM pipeline.jobs j WHERE j.batch_id = b.id) FOR UPDATE SKIP LOCKED);
        DELETE FROM pipeline.key_rates r WHERE r.next_at < now() - interval '1 hour';
        DELETE FROM pipeline.workers w WHERE w.stopped_at < now() - p_older
            AND w.id NOT IN (SELECT j.locked_by FROM pipeline.running_jobs j);
    END IF;
    RETURN cardinality(v_ids);
END $$;

-- The smallest id a job created at that moment can have: ids are in the order of time.
CREATE OR REPLACE FUNCTION pipeline.id_at(p_moment timestamptz) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM p_moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
