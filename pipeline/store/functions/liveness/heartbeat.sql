-- One statement for all jobs of a process. Returns the jobs this worker no longer holds, and why. A row that another
-- transaction holds just now gets its heartbeat the next time; nobody waits for it.
-- What was marked as sent since the beat before this one may still be on its way to where unconfirmed messages are
-- counted, so that only what is older can be called confirmed.
CREATE OR REPLACE FUNCTION pipeline.heartbeat(p_worker text, p_jobs uuid[], p_fences bigint[],
                                              p_confirmed timestamptz, p_counters jsonb, p_not_consuming text[] DEFAULT '{}',
                                              p_unstarted jsonb DEFAULT '{}', p_stuck integer DEFAULT 0,
                                              p_memory bigint DEFAULT NULL, p_stuck_jobs uuid[] DEFAULT '{}')
RETURNS TABLE (job_id uuid, fence bigint, status text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    -- The first after a failover, by whoever has taken its lock there.
    PERFORM pipeline.note_epoch();
    UPDATE pipeline.workers SET heartbeat_at = now(), confirmed_at = least(p_confirmed, heartbeat_at), counters = p_counters,
                       not_consuming = p_not_consuming, unstarted = p_unstarted, stuck = p_stuck, memory = p_memory,
                       stuck_jobs = p_stuck_jobs, stopped_at = NULL, died = false
    WHERE id = p_worker;
    -- A failover may have lost the ends of attempts: their jobs name a holder that does not run them any more. A worker that
    -- runs one has kept its heartbeat since.
    PERFORM pipeline.crash(j.id, j.fence, 'released', 'a failover of PostgreSQL lost how this attempt ended', false)
    FROM pipeline.running_jobs j, (SELECT max(e.began_at) AS at FROM pipeline.epochs e) began
    WHERE j.locked_by = p_worker AND j.heartbeat_at < began.at AND began.at < now() - interval '30 seconds' AND j.id <> ALL (p_jobs);
    RETURN QUERY
    WITH mine AS (
        SELECT a.id, a.fence FROM unnest(p_jobs, p_fences) AS a(id, fence)
    ), held AS MATERIALIZED (
        SELECT j.id, j.fence FROM pipeline.jobs j JOIN mine m ON m.id = j.id AND m.fence = j.fence
        WHERE j.status = 'running' FOR NO KEY UPDATE OF j SKIP LOCKED
    ), beaten AS (
        UPDATE pipeline.jobs j SET heartbeat_at = now() FROM held h WHERE j.id = h.id RETURNING j.id
    )
    SELECT m.id, m.fence, coalesce((SELECT j.status FROM pipeline.jobs j WHERE j.id = m.id), 'deleted')
    FROM mine m WHERE NOT EXISTS (SELECT 1 FROM pipeline.jobs j WHERE j.id = m.id AND j.fence = m.fence AND j.status = 'running');
END $$;
