-- Put a job into the waiting room, to be sent when it is due and the gate lets it through.
-- The job's send number was raised by the caller: whatever message is still on its way is void.
CREATE OR REPLACE FUNCTION pipeline_wait(p_job uuid, p_workflow text, p_phase text, p_priority smallint,
                                         p_due timestamptz, p_reason text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (job_id, phase_id, priority, due_at, reason, lane)
    SELECT p_job, ph.id, p_priority, CASE WHEN p_due > now() THEN p_due END, p_reason,
           (SELECT j.lane FROM jobs j WHERE j.id = p_job)
    FROM phases ph WHERE ph.workflow = p_workflow AND ph.phase = p_phase
    ON CONFLICT (job_id) DO UPDATE
        SET phase_id = excluded.phase_id, seq = DEFAULT, due_at = excluded.due_at, reason = excluded.reason,
            lane = excluded.lane, sent_at = NULL, sent_by = NULL, reserved = false;
    PERFORM pg_notify('pipeline_relay', '');
END $$;
