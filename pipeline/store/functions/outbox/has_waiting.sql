-- Whether a job waits at the gate of a phase. A function, and not an EXISTS where it is needed: the planner would make
-- that a list of everybody who waits.
CREATE OR REPLACE FUNCTION pipeline.has_waiting(p_phase integer) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM pipeline.outbox o WHERE o.phase_id = p_phase AND o.sent_at IS NULL AND o.due_at IS NULL);
END $$;
