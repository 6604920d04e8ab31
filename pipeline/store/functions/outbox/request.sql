-- actor.send(job_id) from an app: ask for an existing job to be sent. The answer is one word: 'accepted',
-- or why not. A job that waits at the gate is sent by the relay as ever; asking again changes nothing.
CREATE OR REPLACE FUNCTION pipeline.request_send(p_job uuid, p_queue text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_job pipeline.jobs;
    v_row pipeline.outbox;
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs WHERE id = p_job FOR UPDATE;
    IF NOT FOUND THEN RETURN 'unknown_job'; END IF;
    IF v_job.status IN ('succeeded', 'failed', 'cancelled') THEN RETURN 'final'; END IF;
    IF v_job.workflow || '.' || v_job.phase <> p_queue THEN RETURN 'other_phase'; END IF;
    IF v_job.status = 'running' THEN RETURN 'already_running'; END IF;
    SELECT * INTO v_row FROM pipeline.outbox WHERE job_id = p_job FOR UPDATE;
    IF v_row.sent_at IS NOT NULL THEN RETURN 'already_queued'; END IF;
    IF v_row.due_at IS NOT NULL THEN RETURN 'not_due'; END IF;
    IF v_row.reason = 'requested' THEN RETURN 'already_queued'; END IF;
    IF pipeline.capacity(ph) <= 0 FROM pipeline.phases ph WHERE ph.queue = p_queue THEN RETURN 'queue_full'; END IF;
    IF v_row.job_id IS NULL THEN
        PERFORM pipeline.enqueue(v_job.id, v_job.workflow, v_job.phase, v_job.priority, NULL, 'requested');
    ELSE
        UPDATE pipeline.outbox SET reason = 'requested' WHERE job_id = p_job;
        PERFORM pipeline.wake();
    END IF;
    RETURN 'accepted';
END $$;
