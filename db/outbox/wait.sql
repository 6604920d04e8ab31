-- Put a job into the waiting room, to be sent when it is due and the gate lets it through.
-- The job's send number was raised by the caller: whatever message is still on its way is void.
-- One that begins anew waits for its lane like a new job; one that comes back at once was let through already.
CREATE OR REPLACE FUNCTION pipeline_wait(p_job uuid, p_workflow text, p_phase text, p_priority smallint,
                                         p_due timestamptz, p_reason text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (job_id, phase_id, priority, due_at, reason, lane)
    SELECT p_job, ph.id, p_priority,
           CASE WHEN p_due > now() THEN p_due WHEN pipeline_has_rate(j.lane) THEN 'infinity' END,
           CASE WHEN (p_due > now()) IS NOT TRUE AND pipeline_has_rate(j.lane) THEN 'rate_limit' ELSE p_reason END, j.lane
    FROM phases ph JOIN jobs j ON j.id = p_job WHERE ph.workflow = p_workflow AND ph.phase = p_phase
    ON CONFLICT (job_id) DO UPDATE
        SET phase_id = excluded.phase_id, seq = DEFAULT, due_at = CASE WHEN p_due > now() THEN p_due END, reason = p_reason,
            lane = excluded.lane, sent_at = NULL, sent_by = NULL, reserved = false;
    PERFORM pg_notify('pipeline_relay', '');
END $$;
