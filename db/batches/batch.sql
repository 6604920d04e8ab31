-- Fan-out and fan-in. A batch is open while jobs are added, sealed when the fan-out ends, complete when
-- sealed and every child is final. Only the step that reaches zero sends the callback, and only once.
CREATE OR REPLACE FUNCTION pipeline_open_batch(p_workflow text DEFAULT NULL, p_body jsonb DEFAULT '{}')
RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    v_id uuid;
BEGIN
    IF p_workflow IS NOT NULL THEN
        PERFORM pipeline_first_phase(p_workflow);
    END IF;
    -- The callback gets the batch's numbers beside this: what could not be submitted then is refused now.
    IF pipeline_wrong_body(p_body, 65536 - 200) THEN
        PERFORM pipeline_refuse_body(p_body, 1);
    END IF;
    INSERT INTO batches (callback_workflow, callback_body) VALUES (p_workflow, p_body) RETURNING id INTO v_id;
    RETURN v_id;
END $$;

CREATE OR REPLACE FUNCTION pipeline_seal_batch(p_batch uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE batches SET sealed = true WHERE id = p_batch AND NOT sealed;
    PERFORM pipeline_finish_batch(p_batch);
END $$;

CREATE OR REPLACE FUNCTION pipeline_finish_batch(p_batch uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_batch batches;
    v_job uuid;
BEGIN
    UPDATE batches SET completed_at = now()
    WHERE id = p_batch AND sealed AND remaining = 0 AND completed_at IS NULL RETURNING * INTO v_batch;
    IF FOUND AND v_batch.callback_workflow IS NOT NULL THEN
        v_job := pipeline_submit(v_batch.callback_workflow, v_batch.callback_body || jsonb_build_object(
            'batch', jsonb_build_object('id', p_batch, 'total', v_batch.total, 'failed', v_batch.failed)));
        UPDATE batches SET callback_job = v_job WHERE id = p_batch;
    END IF;
END $$;

-- Called in the transaction that made these jobs final. A job counts once in its life: a replayed
-- child does not count again, so the callback is never sent twice.
CREATE OR REPLACE FUNCTION pipeline_count_children(p_jobs uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_batch uuid;
BEGIN
    -- OFFSET 0 keeps the planner at the primary key: most jobs are nobody's children.
    IF NOT EXISTS (SELECT 1 FROM (SELECT batch_id FROM jobs WHERE id = ANY (p_jobs) OFFSET 0) c WHERE batch_id IS NOT NULL) THEN
        RETURN;
    END IF;
    FOR v_batch IN
        WITH children AS (
            UPDATE jobs SET counted = true
            WHERE id = ANY (p_jobs) AND batch_id IS NOT NULL AND counted IS NULL AND completed_at IS NOT NULL
            RETURNING batch_id, status
        ), tally AS (
            SELECT batch_id, count(*)::integer AS done, (count(*) FILTER (WHERE status <> 'succeeded'))::integer AS bad
            FROM children GROUP BY batch_id ORDER BY batch_id
        )
        UPDATE batches b SET remaining = b.remaining - t.done, failed = b.failed + t.bad
        FROM tally t WHERE b.id = t.batch_id RETURNING b.id
    LOOP
        PERFORM pipeline_finish_batch(v_batch);
    END LOOP;
END $$;
