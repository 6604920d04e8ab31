-- Put a job into the outbox, to be sent when it is due and the gate lets it through.
-- The job's delivery number was raised by the caller: whatever message is still on its way is void.
-- One that begins anew waits for its rate limit like a new job; one that comes back at once was let through already.
CREATE OR REPLACE FUNCTION pipeline.enqueue(p_job uuid, p_workflow text, p_phase text, p_priority smallint,
                                         p_due timestamptz, p_reason text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pipeline.leave_places(ARRAY[p_job]);
    INSERT INTO pipeline.outbox (job_id, phase_id, priority, due_at, reason, rate_limit)
    SELECT p_job, ph.id, p_priority,
           CASE WHEN p_due > now() THEN p_due WHEN pipeline.has_rate(j.rate_limit) THEN 'infinity' END,
           CASE WHEN (p_due > now()) IS NOT TRUE AND pipeline.has_rate(j.rate_limit) THEN 'rate_limit' ELSE p_reason END, j.rate_limit
    FROM pipeline.phases ph JOIN pipeline.jobs j ON j.id = p_job WHERE ph.workflow = p_workflow AND ph.phase = p_phase
    ON CONFLICT (job_id) DO UPDATE
        SET phase_id = excluded.phase_id, seq = DEFAULT, due_at = CASE WHEN p_due > now() THEN p_due END, reason = p_reason,
            rate_limit = excluded.rate_limit, sent_at = NULL, sent_by = NULL, waits_for = NULL;
    PERFORM pipeline.wake();
END $$;
