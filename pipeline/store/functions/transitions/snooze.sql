-- The job waits at no cost: rate limit, Retry-After, open breaker, job.sleep ('snoozed'), or its worker shuts down
-- ('released'). Verdicts: the outcome, 'retried' or 'exhausted' (see below), 'lost', 'locked'.
-- p_step: kept as a step in the same transaction, so that the next attempt does not wait for the same again.
-- p_asked: the other side asked for it. Each such wait in a row, without any progress in between, is a quarter longer
-- than the one before, up to a minute. The hundredth is the last that is free, an hour and a half after the first at the
-- least: every further one is an error of the application, so that no stranger's answer keeps a job going for ever.
CREATE OR REPLACE FUNCTION pipeline.snooze(p_id uuid, p_fence bigint, p_outcome text, p_reason text,
                                         p_delay double precision, p_error text, p_asked boolean DEFAULT false,
                                         p_step text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c_free constant integer := 100;
    v_job pipeline.jobs;
    v_delay double precision := p_delay;
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs WHERE id = p_id AND fence = p_fence AND status = 'running'
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN pipeline.not_held(p_id, p_fence); END IF;
    IF p_asked THEN
        UPDATE pipeline.jobs SET waits = waits + 1 WHERE id = p_id;
        v_delay := greatest(p_delay, least(power(1.25::double precision, least(v_job.waits, c_free)), 60));
        IF v_job.waits >= c_free THEN
            RETURN pipeline.retry(p_id, p_fence, format(
                'the other side asked to wait %s times in a row, without any progress in between; the last time: %s',
                v_job.waits + 1, coalesce(p_error, p_reason)), v_delay);
        END IF;
    END IF;
    IF p_step IS NOT NULL THEN
        INSERT INTO pipeline.steps (job_id, fence, phase, name, value) VALUES (p_id, p_fence, v_job.phase, p_step, 'null') ON CONFLICT DO NOTHING;
    END IF;
    PERFORM pipeline.record_attempt(v_job, p_outcome, p_error);
    PERFORM pipeline.end_waiting(v_job, 'pending', v_job.attempts, v_job.crashes,
                                 now() + make_interval(secs => v_delay), p_reason, NULL);
    RETURN p_outcome;
END $$;
