-- The backstop behind redelivery: running jobs whose worker's lock stayed free for p_patience, or whose
-- heartbeat is older than their phase allows, go back to waiting. Also sends again what a dead worker had
-- marked as sent but not seen confirmed. Returns what it did, a row a job. A row that somebody has locked just now
-- is left for the next time: this runs in the relay's thread, which must not wait.
CREATE OR REPLACE FUNCTION pipeline_reclaim(p_patience interval)
RETURNS TABLE (job_id uuid, queue text, send bigint, worker text, verdict text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_worker workers;
    v_row record;
BEGIN
    UPDATE workers SET missing_since = now() WHERE stopped_at IS NULL AND missing_since IS NULL AND NOT pipeline_alive(id);
    UPDATE workers SET missing_since = NULL WHERE stopped_at IS NULL AND missing_since IS NOT NULL AND pipeline_alive(id);
    FOR v_worker IN SELECT * FROM workers WHERE stopped_at IS NULL AND missing_since <= now() - p_patience ORDER BY no LOOP
        FOR v_row IN SELECT j.id, j.fence, j.workflow || '.' || j.phase AS queue, j.send, j.isolated
                     FROM running_jobs j WHERE j.locked_by = v_worker.id ORDER BY j.id FOR UPDATE SKIP LOCKED
        LOOP
            job_id := v_row.id; queue := v_row.queue; send := v_row.send; worker := v_worker.id;
            verdict := pipeline_crash(v_row.id, v_row.fence, 'crashed',
                format('worker %s died while it ran this job', v_worker.id), NOT coalesce(v_row.isolated, false));
            RETURN NEXT;
        END LOOP;
        PERFORM pipeline_unsend(array_agg(j.id), array_agg(j.send), 'sender_died')
        FROM outbox o JOIN jobs j ON j.id = o.job_id
        WHERE o.sent_by = v_worker.no AND o.sent_at >= v_worker.confirmed_at;
        UPDATE workers w SET stopped_at = now() WHERE w.no = v_worker.no
            AND w.id NOT IN (SELECT j.locked_by FROM running_jobs j);
    END LOOP;
    FOR v_row IN SELECT j.id, j.fence, ph.queue, j.send, j.locked_by, j.heartbeat_at
                 FROM running_jobs j JOIN phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
                 WHERE j.heartbeat_at < now() - ph.stale_after ORDER BY j.id
                 FOR UPDATE OF j SKIP LOCKED
    LOOP
        job_id := v_row.id; queue := v_row.queue; send := v_row.send; worker := v_row.locked_by;
        verdict := pipeline_crash(v_row.id, v_row.fence, 'stale',
            format('no heartbeat from worker %s since %s', v_row.locked_by, v_row.heartbeat_at), true);
        RETURN NEXT;
    END LOOP;
END $$;
