-- Children of a running attempt, in the transaction that completes its phase: they exist if and only if the job waits for
-- them. Many are submitted by several calls. Their ids are in the order of the bodies.
CREATE OR REPLACE FUNCTION pipeline.spawn(p_parent uuid, p_batch uuid, p_policy text, p_workflow text, p_bodies jsonb[],
                                          p_priority integer, p_traceparent text)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    c_deepest constant integer := 10;
    c_most constant integer := 100000;
    v_depth integer;
    v_total integer;
BEGIN
    SELECT coalesce(b.depth, 0) + 1 INTO v_depth FROM pipeline.jobs j LEFT JOIN pipeline.batches b ON b.id = j.batch_id WHERE j.id = p_parent;
    IF v_depth > c_deepest THEN
        RAISE EXCEPTION USING ERRCODE = 'PL012', MESSAGE = format('job %s is %s levels deep: children of children end there', p_parent, c_deepest),
            HINT = 'submit a job that nobody waits for';
    END IF;
    INSERT INTO pipeline.batches (id, parent_job, policy, depth) VALUES (p_batch, p_parent, p_policy, v_depth) ON CONFLICT (id) DO NOTHING;
    PERFORM pipeline.submit_many(p_workflow, p_bodies, p_priority, p_batch, p_traceparent) LIMIT 1;
    SELECT b.total INTO v_total FROM pipeline.batches b WHERE b.id = p_batch;
    IF v_total > c_most THEN
        RAISE EXCEPTION USING ERRCODE = 'PL012', MESSAGE = format('job %s has more than %s children', p_parent, c_most),
            HINT = 'give each child more to do, or let children have children';
    END IF;
    RETURN v_total;
END $$;

-- The parent need not wait any longer. False if another transaction holds its row: asked again by the leader of maintenance.
CREATE OR REPLACE FUNCTION pipeline.answer_parent(p_batch pipeline.batches) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_child record;
    v_result jsonb := jsonb_build_object('batch', p_batch.id, 'total', p_batch.total, 'policy', p_batch.policy, 'failed', p_batch.failed);
BEGIN
    PERFORM 1 FROM pipeline.jobs j WHERE j.id = p_batch.parent_job FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT 1 FROM pipeline.jobs j WHERE j.id = p_batch.parent_job) THEN RETURN false; END IF;
    IF p_batch.policy = 'all' AND p_batch.failed > 0 THEN
        SELECT j.id, j.error_message INTO v_child FROM pipeline.jobs j
        WHERE j.batch_id = p_batch.id AND j.status IN ('failed', 'cancelled') LIMIT 1;
        v_result := v_result || jsonb_build_object('child', v_child.id, 'error', left(v_child.error_message, 1000));
    END IF;
    IF NOT pipeline.end_wait(p_batch.parent_job, 'children:' || p_batch.id, v_result, 'children') THEN
        -- It was cancelled, and these with it: a replay continues with their ends.
        UPDATE pipeline.jobs j SET waited_for = NULL,
            result = coalesce(j.result, '{}') || jsonb_build_object(pipeline.phase_of_wait(j.id), v_result)
        WHERE j.id = p_batch.parent_job AND j.waited_for = 'children:' || p_batch.id;
    END IF;
    UPDATE pipeline.batches SET answered_at = now() WHERE id = p_batch.id;
    IF p_batch.remaining > 0 THEN
        PERFORM pg_notify('pipeline_maintenance', 'batch');
    END IF;
    RETURN true;
END $$;

-- For the leader of maintenance: children that nobody waits for any more, because another one's end was enough. Up to
-- p_most are cancelled; true if there may be more. What an application holds is asked for again.
CREATE OR REPLACE FUNCTION pipeline.cancel_superfluous(p_most integer DEFAULT 2000) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
    v_jobs uuid[] := ARRAY(
        SELECT j.id FROM pipeline.batches b JOIN pipeline.jobs j ON j.batch_id = b.id
        WHERE b.completed_at IS NULL AND b.answered_at IS NOT NULL AND j.completed_at IS NULL
        ORDER BY j.id LIMIT p_most FOR UPDATE OF j SKIP LOCKED);
BEGIN
    IF v_jobs = '{}' THEN RETURN false; END IF;
    PERFORM pipeline.cancel_many(v_jobs, 'the job that waited for it has what it needs');
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN true;
END $$;

-- The unfinished children of these jobs.
CREATE OR REPLACE FUNCTION pipeline.children_of(p_jobs uuid[]) RETURNS uuid[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(j.id) FROM pipeline.batches b JOIN pipeline.jobs j ON j.batch_id = b.id
    WHERE b.parent_job = ANY (p_jobs) AND b.completed_at IS NULL AND j.completed_at IS NULL
$$;

-- How a job's children ended, in the order of their bodies, p_most of them after one (null: from the first). Those that
-- it does not wait for any more have ended for it, before they are told so (pipeline.cancel_superfluous).
CREATE OR REPLACE FUNCTION pipeline.ends(p_batch uuid, p_after uuid, p_skip integer, p_most integer)
RETURNS TABLE (id uuid, workflow text, status text, error text, result jsonb) LANGUAGE sql STABLE AS $$
    SELECT j.id, j.workflow, CASE WHEN e.early THEN 'cancelled' ELSE j.status END,
           CASE WHEN e.early THEN 'the job that waited for it has what it needs' ELSE j.error_message END,
           CASE WHEN j.status = 'succeeded' THEN j.result -> j.phase END
    FROM pipeline.jobs j CROSS JOIN LATERAL (
        SELECT j.completed_at IS NULL AND EXISTS (
            SELECT 1 FROM pipeline.batches b WHERE b.id = p_batch AND b.answered_at IS NOT NULL AND b.completed_at IS NULL) AS early) e
    WHERE j.batch_id = p_batch AND (p_after IS NULL OR j.id > p_after) ORDER BY j.id OFFSET p_skip LIMIT p_most
$$;
