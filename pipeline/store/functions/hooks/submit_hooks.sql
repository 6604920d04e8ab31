-- Jobs that ended in this transaction: submit what their workflows want to be submitted then. One transition, one job: a
-- job that is replayed and fails again fails twice. A hook whose workflow nobody has registered is left out (and found by
-- pipeline.verify): a transition never fails because of its hooks.
CREATE OR REPLACE FUNCTION pipeline.submit_hooks(p_jobs uuid[], p_event text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
BEGIN
    -- Most workflows have none: one look, however many jobs have ended.
    IF NOT EXISTS (SELECT 1 FROM pipeline.hooks h WHERE h.event = p_event) THEN RETURN; END IF;
    FOR v_row IN
        SELECT j.*, h.submits, h.body AS given FROM pipeline.jobs j JOIN pipeline.hooks h ON h.workflow = j.workflow AND h.event = p_event
        WHERE j.id = ANY (p_jobs) AND j.status = p_event
          AND EXISTS (SELECT 1 FROM pipeline.phases ph WHERE ph.workflow = h.submits AND ph.position = 1)
        ORDER BY j.id, h.no
    LOOP
        PERFORM pipeline.submit(v_row.submits, pipeline.hook_body(v_row.given, jsonb_build_object(
                'job', v_row.id, 'workflow', v_row.workflow, 'phase', v_row.phase, 'state', v_row.status,
                'error', left(v_row.error_message, 4000), 'body', v_row.body,
                'result', CASE WHEN v_row.status = 'succeeded' THEN v_row.result -> v_row.phase END,
                'ended_at', to_char(v_row.completed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))),
            p_traceparent => format('00-%s-%s-01', v_row.trace_id, v_row.span_id));
    END LOOP;
END $$;

-- What the hook's job is told. The result, and after that the body, of a job are left out (null) where they do not fit.
CREATE OR REPLACE FUNCTION pipeline.hook_body(p_given jsonb, p_told jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_body jsonb := p_given || p_told;
    v_part text;
BEGIN
    FOREACH v_part IN ARRAY ARRAY['result', 'body', 'error'] LOOP
        EXIT WHEN NOT pipeline.wrong_body(v_body, 65536);
        v_body := v_body || jsonb_build_object(v_part, NULL);
    END LOOP;
    RETURN v_body;
END $$;
