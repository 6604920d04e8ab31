-- Jobs that wait in a phase which the workflow no longer has go to one that it has, with fresh budgets: the next p_most
-- of that phase after p_after, in the order of their ids. They keep status, due time and place in the line; a new delivery
-- number voids messages that are still out. What runs, and what somebody has locked, stays where it is and is counted.
-- Call it with the last id it returned until that is null.
CREATE OR REPLACE FUNCTION pipeline.move(p_queue text, p_phase text, p_after uuid DEFAULT NULL, p_most integer DEFAULT 1000,
                                         OUT moved integer, OUT running integer, OUT locked integer, OUT last uuid)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_workflow text := split_part(p_queue, '.', 1);
    v_from text := split_part(p_queue, '.', 2);
    v_to pipeline.phases;
    v_found uuid[];
    v_waiting uuid[];
BEGIN
    IF EXISTS (SELECT 1 FROM pipeline.phases ph WHERE ph.workflow = v_workflow AND ph.phase = v_from AND ph.position > 0) THEN
        RAISE EXCEPTION USING ERRCODE = 'PL007', MESSAGE = format('%s is a phase of its workflow', p_queue),
            HINT = 'only jobs in a phase that the workflow no longer has are moved';
    END IF;
    SELECT * INTO v_to FROM pipeline.phases ph WHERE ph.workflow = v_workflow AND ph.phase = p_phase AND ph.position > 0;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'PL001',
            MESSAGE = format('workflow %s has no phase %s', v_workflow, p_phase),
            HINT = coalesce('its phases: ' || (SELECT string_agg(ph.phase, ', ' ORDER BY ph.position) FROM pipeline.phases ph
                                               WHERE ph.workflow = v_workflow AND ph.position > 0),
                            'known workflows: ' || (SELECT string_agg(DISTINCT ph.workflow, ', ') FROM pipeline.phases ph));
    END IF;
    SELECT array_agg(f.id), count(*) FILTER (WHERE f.status = 'running') INTO v_found, running
    FROM (SELECT j.id, j.status FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
          WHERE j.workflow = v_workflow AND j.phase = v_from AND (p_after IS NULL OR o.job_id > p_after)
          ORDER BY o.job_id LIMIT p_most) f;
    SELECT array_agg(w.id) INTO v_waiting
    FROM (SELECT j.id FROM pipeline.jobs j JOIN pipeline.outbox o ON o.job_id = j.id
          WHERE j.id = ANY (v_found) AND j.workflow = v_workflow AND j.phase = v_from
            AND j.status IN ('pending', 'retryable') ORDER BY j.id FOR UPDATE OF j, o SKIP LOCKED) w;
    PERFORM pipeline.leave_places(v_waiting);
    UPDATE pipeline.jobs j SET phase = v_to.phase, max_attempts = v_to.max_attempts, attempts = 0, crashes = 0, waits = 0,
        send = j.send + 1, updated_at = now(),
        rate_limit = coalesce(pipeline.limit_name(v_to.rate_limit, j.body), CASE WHEN v_to.position = 1 THEN j.rate_limit END)
    WHERE j.id = ANY (v_waiting);
    -- It goes through the phases from there on as if for the first time.
    DELETE FROM pipeline.steps WHERE job_id = ANY (v_waiting);
    UPDATE pipeline.outbox o SET phase_id = v_to.id, sent_at = NULL, sent_by = NULL,
        reason = CASE WHEN o.due_at IS NULL THEN 'moved' ELSE o.reason END,
        -- Whoever waited for a rate limit waits for that of the new phase, if it has one.
        due_at = CASE WHEN o.waits_for IS NOT NULL OR o.has_turn IS FALSE OR o.due_at < 'infinity' THEN o.due_at
                      WHEN pipeline.waits_at_limit(j.rate_limit, v_to.id) THEN 'infinity' END,
        rate_limit = CASE WHEN o.waits_for IS NULL AND o.has_turn IS NOT FALSE THEN j.rate_limit END
    FROM pipeline.jobs j WHERE o.job_id = ANY (v_waiting) AND j.id = o.job_id;
    moved := coalesce(cardinality(v_waiting), 0);
    running := coalesce(running, 0);
    locked := coalesce(cardinality(v_found), 0) - running - moved;
    last := v_found[cardinality(v_found)];
    IF moved > 0 THEN
        PERFORM pipeline.wake();
    END IF;
END $$;
