-- RabbitMQ itself gave the message up (delivery limit): the job that waits on it fails, with the reason.
CREATE OR REPLACE FUNCTION pipeline.undeliverable(p_id uuid, p_send bigint, p_reason text)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_job pipeline.jobs;
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs
    WHERE id = p_id AND send = p_send AND status IN ('pending', 'retryable')
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN false; END IF;
    v_job.fence := v_job.fence + 1;
    v_job.sent_at := (SELECT o.sent_at FROM pipeline.outbox o WHERE o.job_id = p_id);
    PERFORM pipeline.record_attempt(v_job, 'undeliverable', p_reason);
    UPDATE pipeline.jobs SET fence = v_job.fence WHERE id = p_id;
    PERFORM pipeline.end_failed(v_job, v_job.crashes, v_job.attempts, p_reason);
    RETURN true;
END $$;
