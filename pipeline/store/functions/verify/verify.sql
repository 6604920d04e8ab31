-- Compares PostgreSQL's own tables with each other: finds what no step leaves behind, but a manual change, a restored
-- backup or a bug may. One row per finding; with p_repair each is repaired by the steps that jobs take otherwise. Running
-- jobs of dead workers are left to pipeline.reclaim, messages to reconciliation (pipeline/maintenance/verify.py calls all three).
CREATE OR REPLACE FUNCTION pipeline.verify(p_repair boolean)
RETURNS TABLE (problem text, subject text, detail text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_job pipeline.jobs;
    v_row record;
BEGIN
    FOR v_row IN
        SELECT j.*, CASE WHEN j.status = 'running' THEN 'runs without being marked as sent'
                         WHEN o.job_id IS NULL THEN 'waits without an intent to send'
                         ELSE 'waits before another phase than its own' END AS wrong
        FROM pipeline.jobs j LEFT JOIN pipeline.outbox o ON o.job_id = j.id LEFT JOIN pipeline.phases ph ON ph.id = o.phase_id
        WHERE j.completed_at IS NULL AND (o.job_id IS NULL OR (j.status = 'running' AND o.sent_at IS NULL)
            OR (j.status <> 'running' AND (ph.workflow, ph.phase) <> (j.workflow, j.phase)))
        ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
    LOOP
        problem := v_row.wrong; subject := v_row.id;
        detail := format('%s.%s, %s', v_row.workflow, v_row.phase, v_row.status);
        IF p_repair AND v_row.status = 'running' THEN
            PERFORM pipeline.crash(v_row.id, v_row.fence, 'stale', 'it ran without being marked as sent', false);
        ELSIF p_repair THEN
            UPDATE pipeline.jobs SET send = send + 1, updated_at = now() WHERE id = v_row.id;
            PERFORM pipeline.enqueue(v_row.id, v_row.workflow, v_row.phase, v_row.priority, v_row.next_retry_at, 'verified');
        END IF;
        RETURN NEXT;
    END LOOP;
    FOR v_row IN
        SELECT o.job_id, j.status FROM pipeline.outbox o LEFT JOIN pipeline.jobs j ON j.id = o.job_id
        WHERE j.id IS NULL OR j.completed_at IS NOT NULL ORDER BY o.job_id
    LOOP
        problem := 'intent to send a job that does not wait'; subject := v_row.job_id;
        detail := coalesce(v_row.status, 'there is no such job');
        IF p_repair THEN
            DELETE FROM pipeline.outbox o WHERE o.job_id = v_row.job_id AND NOT EXISTS (
                SELECT 1 FROM pipeline.jobs j WHERE j.id = o.job_id AND j.completed_at IS NULL);
        END IF;
        RETURN NEXT;
    END LOOP;
    FOR v_job IN
        SELECT j.* FROM pipeline.jobs j LEFT JOIN pipeline.workers w ON w.id = j.locked_by
        WHERE j.status = 'running' AND w.no IS NULL ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
    LOOP
        problem := 'runs under an unknown worker'; subject := v_job.id; detail := v_job.locked_by;
        IF p_repair THEN
            PERFORM pipeline.crash(v_job.id, v_job.fence, 'stale', format('there is no worker %s', v_job.locked_by), false);
        END IF;
        RETURN NEXT;
    END LOOP;
    FOR v_row IN
        SELECT p.phase_id, p.number, p.job_id, ph.queue FROM pipeline.places p JOIN pipeline.phases ph ON ph.id = p.phase_id
        WHERE p.job_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
            WHERE o.job_id = p.job_id AND o.sent_at IS NOT NULL AND (j.workflow, j.phase) = (ph.workflow, ph.phase))
        ORDER BY p.phase_id, p.number FOR UPDATE OF p SKIP LOCKED
    LOOP
        problem := 'place of a pool that no job uses is taken'; subject := v_row.job_id;
        detail := format('%s, number %s', v_row.queue, v_row.number);
        IF p_repair THEN
            PERFORM pipeline.leave_place(ARRAY[v_row.phase_id], ARRAY[v_row.job_id]);
            PERFORM pipeline.wake();
        END IF;
        RETURN NEXT;
    END LOOP;
    FOR v_row IN
        SELECT 'key' AS kind, k.workflow || ': ' || k.key AS name, k.job_id FROM pipeline.keys k
        LEFT JOIN pipeline.jobs j ON j.id = k.job_id AND j.workflow = k.workflow AND j.idempotency_key = k.key WHERE j.id IS NULL
        UNION ALL
        SELECT 'tag', t.tag, t.job_id FROM pipeline.tags t LEFT JOIN pipeline.jobs j ON j.id = t.job_id AND t.tag = ANY (j.tags)
        WHERE j.id IS NULL ORDER BY 1, 2, 3
    LOOP
        problem := format('%s of a job that does not have it', v_row.kind); subject := v_row.job_id; detail := v_row.name;
        IF p_repair THEN
            DELETE FROM pipeline.keys k WHERE v_row.kind = 'key' AND k.workflow || ': ' || k.key = v_row.name AND NOT EXISTS (
                SELECT 1 FROM pipeline.jobs j WHERE j.id = k.job_id AND j.workflow = k.workflow AND j.idempotency_key = k.key);
            DELETE FROM pipeline.tags t WHERE v_row.kind = 'tag' AND t.tag = v_row.name AND t.job_id = v_row.job_id AND NOT EXISTS (
                SELECT 1 FROM pipeline.jobs j WHERE j.id = t.job_id AND t.tag = ANY (j.tags));
        END IF;
        RETURN NEXT;
    END LOOP;
    FOR v_row IN
        SELECT s.job_id, count(*) AS n FROM (SELECT job_id FROM pipeline.steps UNION ALL SELECT job_id FROM pipeline.signals
                                             UNION ALL SELECT job_id FROM pipeline.attempt_logs) s
        WHERE NOT EXISTS (SELECT 1 FROM pipeline.jobs j WHERE j.id = s.job_id) GROUP BY s.job_id ORDER BY s.job_id
    LOOP
        problem := 'steps, events or logs without a job'; subject := v_row.job_id; detail := format('%s rows', v_row.n);
        IF p_repair THEN
            DELETE FROM pipeline.steps s WHERE s.job_id = v_row.job_id;
            DELETE FROM pipeline.signals s WHERE s.job_id = v_row.job_id;
            DELETE FROM pipeline.attempt_logs l WHERE l.job_id = v_row.job_id;
        END IF;
        RETURN NEXT;
    END LOOP;
    FOR v_row IN
        SELECT o.job_id, o.waits_for FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
        WHERE o.waits_for IS NOT NULL AND (o.due_at IS NULL OR (o.due_at > now() AND CASE
            WHEN o.waits_for LIKE 'event:%' THEN EXISTS (
                SELECT 1 FROM pipeline.signals s WHERE s.job_id = o.job_id AND 'event:' || s.name = o.waits_for AND s.taken_at IS NULL)
            ELSE NOT EXISTS (SELECT 1 FROM pipeline.batches b WHERE 'children:' || b.id = o.waits_for AND b.answered_at IS NULL) END))
        ORDER BY o.job_id FOR NO KEY UPDATE OF j SKIP LOCKED
    LOOP
        problem := 'waits for what has come'; subject := v_row.job_id; detail := v_row.waits_for;
        IF p_repair AND NOT pipeline.deliver(v_row.job_id) THEN
            UPDATE pipeline.outbox o SET (waits_for, due_at, rate_limit) = (
                SELECT NULL, CASE WHEN o.has_turn IS FALSE OR pipeline.waits_at_limit(j.rate_limit, o.phase_id) THEN 'infinity'::timestamptz END,
                       CASE WHEN o.has_turn IS NOT FALSE THEN j.rate_limit END FROM pipeline.jobs j WHERE j.id = o.job_id)
            WHERE o.job_id = v_row.job_id AND o.waits_for = v_row.waits_for;
            PERFORM pipeline.wake();
        END IF;
        RETURN NEXT;
    END LOOP;
    FOR v_row IN
        SELECT o.job_id, j.rate_limit, CASE WHEN o.rate_limit IS NULL THEN 'waits for no end' ELSE 'waits for another rate limit than its own' END AS wrong
        FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
        WHERE o.sent_at IS NULL AND o.waits_for IS NULL AND o.has_turn IS NOT FALSE
            AND ((o.due_at = 'infinity' AND o.rate_limit IS NULL) OR o.rate_limit <> coalesce(j.rate_limit, ''))
        ORDER BY o.job_id FOR NO KEY UPDATE OF o SKIP LOCKED
    LOOP
        problem := v_row.wrong; subject := v_row.job_id; detail := coalesce(v_row.rate_limit, 'it has none');
        IF p_repair THEN
            UPDATE pipeline.outbox o SET due_at = now(), rate_limit = v_row.rate_limit WHERE o.job_id = v_row.job_id;
            PERFORM pipeline.wake();
        END IF;
        RETURN NEXT;
    END LOOP;
    FOR v_row IN
        SELECT l.name, l.paused_until FROM pipeline.rate_limits l JOIN pipeline.breakers b ON b.name = l.name
        WHERE l.pause_reason = 'breaker' AND l.paused_until > now()
            AND l.paused_until > coalesce(greatest(b.open_until, b.probe_until), '-infinity') ORDER BY l.name
    LOOP
        problem := 'rate limit that its breaker does not hold any more'; subject := v_row.name; detail := format('paused until %s', v_row.paused_until);
        IF p_repair THEN
            PERFORM pipeline.end_breaker_pause(v_row.name);
        END IF;
        RETURN NEXT;
    END LOOP;
    FOR v_row IN
        SELECT h.* FROM pipeline.hooks h
        WHERE NOT EXISTS (SELECT 1 FROM pipeline.phases ph WHERE ph.workflow = h.submits AND ph.position = 1) ORDER BY h.workflow, h.event
    LOOP
        problem := 'hook whose workflow nobody has registered'; subject := v_row.workflow;
        detail := format('%s: submits %s', v_row.event, v_row.submits);
        RETURN NEXT;
    END LOOP;
    FOR v_row IN SELECT * FROM pipeline.neglected_schedules() LOOP
        problem := v_row.problem; subject := v_row.schedule; detail := v_row.detail;
        RETURN NEXT;
    END LOOP;
    FOR v_row IN SELECT * FROM pipeline.undeclared() LOOP
        problem := 'phase that nobody declares has jobs'; subject := v_row.queue;
        detail := format('%s jobs, of which %s run: run "pipeline move %s PHASE", deploy its code again, or cancel them',
                         v_row.jobs, v_row.running, v_row.queue);
        RETURN NEXT;
    END LOOP;
    FOR v_row IN
        SELECT b.id, b.remaining - c.ended AS remaining, c.open FROM pipeline.batches b CROSS JOIN LATERAL (
            SELECT (SELECT count(*)::integer FROM pipeline.jobs j WHERE j.batch_id = b.id AND j.counted IS NULL) AS open,
                   (SELECT coalesce(sum(e.ended), 0)::integer FROM pipeline.batch_ends e WHERE e.batch_id = b.id) AS ended) c
        WHERE b.completed_at IS NULL AND b.remaining - c.ended <> c.open ORDER BY b.id FOR UPDATE OF b SKIP LOCKED
    LOOP
        problem := 'batch that counts wrong'; subject := v_row.id;
        detail := format('%s said to be open, %s are', v_row.remaining, v_row.open);
        IF p_repair THEN
            DELETE FROM pipeline.batch_ends WHERE batch_id = v_row.id;
            UPDATE pipeline.batches SET remaining = v_row.open, total = greatest(total, v_row.open) WHERE id = v_row.id;
            PERFORM pipeline.finish_batch(v_row.id);
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- The phases that no workflow has any more and that still have jobs. (All jobs that have not ended are in the outbox.)
CREATE OR REPLACE FUNCTION pipeline.undeclared() RETURNS TABLE (queue text, jobs bigint, running bigint)
LANGUAGE sql STABLE AS $$
    SELECT l.workflow || '.' || l.phase, l.jobs, l.running
    FROM (SELECT j.workflow, j.phase, count(*) AS jobs, count(*) FILTER (WHERE j.status = 'running') AS running
          FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id WHERE j.completed_at IS NULL GROUP BY j.workflow, j.phase) l
    WHERE NOT EXISTS (SELECT 1 FROM pipeline.phases ph WHERE ph.workflow = l.workflow AND ph.phase = l.phase AND ph.position > 0)
    ORDER BY 1
$$;
