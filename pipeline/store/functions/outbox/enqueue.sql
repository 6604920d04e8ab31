-- Put a job into the outbox, to be sent when it is due and the gate lets it through.
-- The job's delivery number was raised by the caller: whatever message is still on its way is void.
-- One that begins anew waits for its key's turn and its rate limit like a new job; one that comes back at once was let
-- through already. One that waits for a time leaves its turn to others.
CREATE OR REPLACE FUNCTION pipeline.enqueue(p_job uuid, p_workflow text, p_phase text, p_priority smallint,
                                         p_due timestamptz, p_reason text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_due timestamptz := CASE WHEN p_due > now() THEN p_due END;
BEGIN
    PERFORM pipeline.leave_places(ARRAY[p_job]);
    INSERT INTO pipeline.outbox AS o (job_id, phase_id, priority, due_at, reason, rate_limit, turns_id, key, has_turn)
    SELECT p_job, ph.id, p_priority,
           CASE WHEN v_due IS NOT NULL THEN v_due WHEN t.id IS NOT NULL OR pipeline.waits_at_limit(j.rate_limit, ph.id) THEN 'infinity' END,
           CASE WHEN v_due IS NOT NULL THEN p_reason WHEN t.id IS NOT NULL THEN 'key'
                WHEN pipeline.waits_at_limit(j.rate_limit, ph.id) THEN 'rate_limit' ELSE p_reason END,
           CASE WHEN t.id IS NULL THEN j.rate_limit END,
           t.id, CASE WHEN t.id IS NOT NULL THEN pipeline.key_in(j.body, t.field) END, CASE WHEN t.id IS NOT NULL THEN false END
    FROM pipeline.phases ph JOIN pipeline.jobs j ON j.id = p_job LEFT JOIN pipeline.turns t ON t.id = ph.turns_id
    WHERE ph.workflow = p_workflow AND ph.phase = p_phase
    ON CONFLICT (job_id) DO UPDATE
        SET phase_id = excluded.phase_id, seq = DEFAULT, due_at = v_due, reason = p_reason,
            has_turn = CASE WHEN o.turns_id IS NOT NULL THEN v_due IS NULL END,
            rate_limit = CASE WHEN o.turns_id IS NULL OR v_due IS NULL THEN (SELECT j.rate_limit FROM pipeline.jobs j WHERE j.id = p_job) END,
            sent_at = NULL, sent_by = NULL, waits_for = NULL;
    PERFORM pipeline.wake();
END $$;
