-- The backstop behind redelivery: jobs of dead workers (p_dead, their numbers) and jobs without a fresh heartbeat
-- (p_jobs, p_fences) wait again. The caller has seen each of them twice, far enough apart (pipeline/maintenance/reclaim.py);
-- here the second look is taken once more, under lock. Also sends again what a dead worker had marked as sent but not
-- seen confirmed. Returns what it did, a row a job. A row that somebody has locked just now is left for the next time.
CREATE OR REPLACE FUNCTION pipeline.reclaim(p_dead integer[], p_jobs uuid[], p_fences bigint[])
RETURNS TABLE (job_id uuid, queue text, send bigint, worker text, verdict text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_worker pipeline.workers;
    v_row record;
BEGIN
    FOR v_worker IN SELECT * FROM pipeline.workers w WHERE w.no = ANY (p_dead) AND w.stopped_at IS NULL AND NOT pipeline.alive(w.id)
                    ORDER BY w.no LOOP
        FOR v_row IN SELECT j.id, j.fence, j.workflow || '.' || j.phase AS queue, j.send, j.isolated
                     FROM pipeline.running_jobs j WHERE j.locked_by = v_worker.id ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED
        LOOP
            job_id := v_row.id; queue := v_row.queue; send := v_row.send; worker := v_worker.id;
            verdict := CASE WHEN v_worker.leaving
                THEN pipeline.crash(v_row.id, v_row.fence, 'released',
                    format('worker %s stopped before it could settle this job', v_worker.id), false)
                ELSE pipeline.crash(v_row.id, v_row.fence, 'crashed',
                    format('worker %s died while it ran this job', v_worker.id), NOT coalesce(v_row.isolated, false)) END;
            RETURN NEXT;
        END LOOP;
        PERFORM pipeline.unsend(array_agg(j.id), array_agg(j.send), 'sender_died')
        FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
        WHERE o.sent_by = v_worker.no AND o.sent_at >= v_worker.confirmed_at;
        -- What was locked keeps the worker on the list, to be looked at again.
        UPDATE pipeline.workers w SET stopped_at = now(), died = NOT w.leaving WHERE w.no = v_worker.no
            AND w.id NOT IN (SELECT j.locked_by FROM pipeline.running_jobs j)
            AND NOT EXISTS (SELECT 1 FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id AND j.status <> 'running'
                            WHERE o.sent_by = w.no AND o.sent_at >= w.confirmed_at);
    END LOOP;
    FOR v_row IN SELECT j.id, j.fence, ph.queue, j.send, j.locked_by, j.heartbeat_at
                 FROM unnest(p_jobs, p_fences) AS a(id, fence) JOIN pipeline.jobs j ON j.id = a.id AND j.fence = a.fence
                      JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
                 WHERE j.status = 'running' AND j.heartbeat_at < now() - ph.stale_after ORDER BY j.id
                 FOR NO KEY UPDATE OF j SKIP LOCKED
    LOOP
        job_id := v_row.id; queue := v_row.queue; send := v_row.send; worker := v_row.locked_by;
        verdict := pipeline.crash(v_row.id, v_row.fence, 'stale',
            format('no heartbeat from worker %s since %s', v_row.locked_by, v_row.heartbeat_at), true);
        RETURN NEXT;
    END LOOP;
END $$;

-- Workers that are not there: their lock is free and they did not say goodbye.
CREATE OR REPLACE FUNCTION pipeline.missing_workers() RETURNS SETOF integer LANGUAGE sql VOLATILE AS $$
    SELECT w.no FROM pipeline.workers w WHERE w.stopped_at IS NULL AND NOT pipeline.alive(w.id) ORDER BY w.no
$$;

-- Running jobs whose last heartbeat is older than p_older; stale says whether it is older than the phase allows. One that
-- another transaction holds may have been refused its heartbeat for that reason alone, and is not looked at.
CREATE OR REPLACE FUNCTION pipeline.silent_jobs(p_older interval)
RETURNS TABLE (job_id uuid, fence bigint, heartbeat_at timestamptz, stale boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT j.id, j.fence, j.heartbeat_at, j.heartbeat_at < now() - ph.stale_after
    FROM pipeline.running_jobs j JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
    WHERE j.heartbeat_at < now() - least(p_older, ph.stale_after) FOR NO KEY UPDATE OF j SKIP LOCKED
$$;

-- A worker that was cut off lost its jobs, and a crash was counted for each. It is back, so it never crashed: the crash
-- is taken off again, once, and a job that was called a poison pill for it starts again. Returns what was settled this
-- way or has nothing to be settled; what another transaction holds is missing from the answer: ask again.
CREATE OR REPLACE FUNCTION pipeline.refund_crash(p_worker text, p_jobs uuid[], p_fences bigint[])
RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
BEGIN
    FOR v_row IN
        SELECT a.id, a.fence, j.id IS NOT NULL AS free, j.status, j.phase, t.outcome, t.phase AS charged_in
        FROM unnest(p_jobs, p_fences) AS a(id, fence)
             LEFT JOIN LATERAL (SELECT * FROM pipeline.jobs WHERE id = a.id FOR NO KEY UPDATE SKIP LOCKED) j ON true
             LEFT JOIN pipeline.attempts t ON t.job_id = a.id AND t.fence = a.fence AND t.worker = p_worker
                  AND t.outcome IN ('crashed', 'stale', 'poisoned')
        ORDER BY a.id
    LOOP
        IF v_row.outcome IS NOT NULL THEN
            CONTINUE WHEN NOT v_row.free;
            UPDATE pipeline.attempts SET outcome = 'released', error = left(error || ' (it came back: not charged)', 20000)
            WHERE job_id = v_row.id AND fence = v_row.fence;
            IF v_row.status = 'failed' AND v_row.outcome = 'poisoned' THEN
                PERFORM pipeline.replay(v_row.id);
            ELSE
                UPDATE pipeline.jobs SET crashes = greatest(crashes - 1, 0) WHERE id = v_row.id AND phase = v_row.charged_in;
            END IF;
        END IF;
        RETURN NEXT v_row.id;
    END LOOP;
END $$;
