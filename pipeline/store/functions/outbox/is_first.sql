-- Whether nobody who waits at the gate of a phase goes before this job: nobody of a higher priority, and of its own
-- priority nobody older. A function, and not an EXISTS where it is needed: the planner would make that a list of everybody
-- who waits.
CREATE OR REPLACE FUNCTION pipeline.is_first(p_phase integer, p_priority smallint, p_job uuid) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_head record;
BEGIN
    SELECT o.priority, o.job_id INTO v_head FROM pipeline.outbox o
    WHERE o.phase_id = p_phase AND o.sent_at IS NULL AND o.due_at IS NULL ORDER BY o.priority DESC, o.seq LIMIT 1;
    RETURN NOT FOUND OR v_head.priority < p_priority OR (v_head.priority = p_priority AND v_head.job_id >= p_job);
END $$;
