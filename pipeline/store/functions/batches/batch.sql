-- Fan-out and fan-in. A batch is open while jobs are added, sealed when the fan-out ends, complete when
-- sealed and every child is final. Only the step that reaches zero sends the callback, and only once.
CREATE OR REPLACE FUNCTION pipeline.open_batch(p_workflow text DEFAULT NULL, p_body jsonb DEFAULT '{}')
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_id uuid;
BEGIN
    IF p_workflow IS NOT NULL THEN
        PERFORM pipeline.first_phase(p_workflow);
    END IF;
    -- The callback gets the batch's numbers beside this: what could not be submitted then is refused now.
    IF pipeline.wrong_body(p_body, 65536 - 200) THEN
        PERFORM pipeline.refuse_body(p_body, 1);
    END IF;
    INSERT INTO pipeline.batches (callback_workflow, callback_body) VALUES (p_workflow, p_body) RETURNING id INTO v_id;
    RETURN v_id;
END $$;

CREATE OR REPLACE FUNCTION pipeline.seal_batch(p_batch uuid)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE pipeline.batches SET sealed = true WHERE id = p_batch AND NOT sealed;
    PERFORM pipeline.finish_batch(p_batch);
END $$;

-- Bring the batch's counts up to date and, if that completes it, send the callback, once. False if another transaction
-- holds the batch: whoever waits for the lock would keep its own rows locked meanwhile.
CREATE OR REPLACE FUNCTION pipeline.finish_batch(p_batch uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_batch pipeline.batches;
    v_job uuid;
BEGIN
    PERFORM 1 FROM pipeline.batches WHERE id = p_batch FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN NOT EXISTS (SELECT 1 FROM pipeline.batches WHERE id = p_batch); END IF;
    WITH ends AS (
        DELETE FROM pipeline.batch_ends WHERE batch_id = p_batch RETURNING ended, failed
    ), tally AS (
        SELECT sum(ended)::integer AS ended, sum(failed)::integer AS failed FROM ends HAVING count(*) > 0
    )
    UPDATE pipeline.batches b SET remaining = b.remaining - t.ended, failed = b.failed + t.failed FROM tally t WHERE b.id = p_batch;
    SELECT * INTO v_batch FROM pipeline.batches b WHERE b.id = p_batch AND b.sealed AND b.parent_job IS NOT NULL AND b.answered_at IS NULL
        AND (b.remaining = 0 OR (b.policy = 'all' AND b.failed > 0) OR (b.policy = 'any' AND b.total - b.remaining > b.failed));
    IF FOUND AND NOT pipeline.answer_parent(v_batch) THEN RETURN false; END IF;
    UPDATE pipeline.batches SET completed_at = now()
    WHERE id = p_batch AND sealed AND remaining = 0 AND completed_at IS NULL AND (parent_job IS NULL OR answered_at IS NOT NULL) RETURNING * INTO v_batch;
    IF FOUND AND v_batch.callback_workflow IS NOT NULL THEN
        v_job := pipeline.submit(v_batch.callback_workflow, v_batch.callback_body || jsonb_build_object(
            'batch', jsonb_build_object('id', p_batch, 'total', v_batch.total, 'failed', v_batch.failed)));
        UPDATE pipeline.batches SET callback_job = v_job WHERE id = p_batch;
    END IF;
    RETURN true;
END $$;

-- Called in the transaction that made these jobs final. A job counts once in its life: a replayed
-- child does not count again, so the callback is never sent twice. Each end is a row of its own; whoever finds the batch
-- free adds them up, and what nobody could add up at once is left to the leader of maintenance, who is told.
CREATE OR REPLACE FUNCTION pipeline.count_children(p_jobs uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_batch uuid;
BEGIN
    -- OFFSET 0 keeps the planner at the primary key: most jobs are nobody's children.
    IF NOT EXISTS (SELECT 1 FROM (SELECT batch_id FROM pipeline.jobs WHERE id = ANY (p_jobs) OFFSET 0) c WHERE batch_id IS NOT NULL) THEN
        RETURN;
    END IF;
    FOR v_batch IN
        WITH children AS (
            UPDATE pipeline.jobs SET counted = true
            WHERE id = ANY (p_jobs) AND batch_id IS NOT NULL AND counted IS NULL AND completed_at IS NOT NULL
            RETURNING batch_id, status
        )
        INSERT INTO pipeline.batch_ends (batch_id, ended, failed)
        SELECT batch_id, count(*), count(*) FILTER (WHERE status <> 'succeeded') FROM children
        GROUP BY batch_id ORDER BY batch_id RETURNING batch_id
    LOOP
        IF NOT pipeline.finish_batch(v_batch) THEN
            PERFORM pg_notify('pipeline_maintenance', 'batch');
        END IF;
    END LOOP;
END $$;

-- For the leader of maintenance: add up what is left. True if a batch was held by somebody, to be asked for again soon.
CREATE OR REPLACE FUNCTION pipeline.finish_batches() RETURNS boolean LANGUAGE sql AS $$
    SELECT coalesce(NOT bool_and(pipeline.finish_batch(e.batch_id)), false)
    FROM (SELECT batch_id FROM pipeline.batch_ends
          -- Counted, and the parent's row was held.
          UNION SELECT b.id FROM pipeline.batches b WHERE b.completed_at IS NULL AND b.parent_job IS NOT NULL AND b.answered_at IS NULL
              AND b.sealed AND (b.remaining = 0 OR b.policy <> 'best_effort')) e
$$;
