-- One statement for all jobs of a process. Returns the jobs this worker no longer holds, and why.
-- What was marked as sent since the beat before this one may still be on its way to where unconfirmed messages are
-- counted, so that only what is older can be called confirmed.
DROP FUNCTION IF EXISTS pipeline_heartbeat(text, uuid[], bigint[], timestamptz, jsonb);
DROP FUNCTION IF EXISTS pipeline_heartbeat(text, uuid[], bigint[], timestamptz, jsonb, text[]);
CREATE OR REPLACE FUNCTION pipeline_heartbeat(p_worker text, p_jobs uuid[], p_fences bigint[],
                                              p_confirmed timestamptz, p_counters jsonb, p_deaf text[] DEFAULT '{}',
                                              p_unstarted jsonb DEFAULT '{}')
RETURNS TABLE (job_id uuid, fence bigint, status text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    UPDATE workers SET heartbeat_at = now(), confirmed_at = least(p_confirmed, heartbeat_at), counters = p_counters,
                       deaf = p_deaf, unstarted = p_unstarted, missing_since = NULL, stopped_at = NULL
    WHERE id = p_worker;
    RETURN QUERY
    WITH mine AS (
        SELECT a.id, a.fence FROM unnest(p_jobs, p_fences) AS a(id, fence)
    ), held AS MATERIALIZED (
        SELECT j.id, j.fence FROM jobs j JOIN mine m ON m.id = j.id AND m.fence = j.fence
        WHERE j.status = 'running' ORDER BY j.id FOR NO KEY UPDATE OF j
    ), beaten AS (
        UPDATE jobs j SET heartbeat_at = now() FROM held h WHERE j.id = h.id RETURNING j.id
    )
    SELECT m.id, m.fence, coalesce((SELECT j.status FROM jobs j WHERE j.id = m.id), 'deleted')
    FROM mine m WHERE NOT EXISTS (SELECT 1 FROM held h WHERE h.id = m.id AND h.fence = m.fence);
END $$;
