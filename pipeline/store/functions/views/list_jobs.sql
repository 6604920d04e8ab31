-- The newest jobs before p_before that match; null filters match everything. Those of a tag are walked, newest first. Jobs that ended or back off are found by
-- an index, a short scan for each phase; those that wait by walking the outbox, newest first, p_walk rows at
-- most. If the walk ended early, floor says where: older jobs were not looked at yet, so that a page can be short
-- and still not be the last.
CREATE OR REPLACE FUNCTION pipeline.list_jobs(p_workflow text, p_phase text, p_status text, p_before uuid, p_most integer,
                                              p_walk integer DEFAULT 20000, p_tag text DEFAULT NULL, OUT ids uuid[], OUT floor uuid)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    IF p_tag IS NOT NULL THEN
        SELECT t.job_id INTO floor FROM pipeline.tags t WHERE t.tag = p_tag AND t.job_id < p_before ORDER BY t.job_id DESC OFFSET p_walk - 1 LIMIT 1;
        ids := ARRAY(
            SELECT t.job_id FROM pipeline.tags t
            -- Looked up one by one, in the order of the walk: the planner does not know how many match.
            CROSS JOIN LATERAL (SELECT 1 FROM pipeline.jobs j WHERE j.id = t.job_id AND (p_workflow IS NULL OR j.workflow = p_workflow)
                AND (p_phase IS NULL OR j.phase = p_phase) AND (p_status IS NULL OR j.status = p_status) OFFSET 0) j
            WHERE t.tag = p_tag AND t.job_id < p_before AND t.job_id >= coalesce(list_jobs.floor, '00000000-0000-0000-0000-000000000000')
            ORDER BY t.job_id DESC LIMIT p_most);
        RETURN;
    END IF;
    IF p_workflow IS NULL AND p_phase IS NULL AND p_status IS NULL THEN
        ids := ARRAY(SELECT j.id FROM pipeline.jobs j WHERE j.id < p_before ORDER BY j.id DESC LIMIT p_most);
        RETURN;
    END IF;
    IF p_status IS NULL OR p_status = 'pending' THEN
        SELECT w.job_id INTO floor FROM pipeline.outbox w WHERE w.job_id < p_before ORDER BY w.job_id DESC OFFSET p_walk - 1 LIMIT 1;
    END IF;
    ids := ARRAY(
        WITH wanted AS MATERIALIZED (
            SELECT ph.id, ph.workflow, ph.phase FROM pipeline.phases ph
            WHERE (p_workflow IS NULL OR ph.workflow = p_workflow) AND (p_phase IS NULL OR ph.phase = p_phase)
        ), resting AS (
            SELECT e.id FROM wanted w CROSS JOIN unnest(ARRAY['succeeded', 'failed', 'cancelled', 'retryable']) AS s(status)
            CROSS JOIN LATERAL (
                SELECT j.id FROM pipeline.jobs j
                WHERE j.workflow = w.workflow AND j.rest = w.phase || ':' || s.status AND j.id < p_before
                ORDER BY j.workflow DESC, j.rest DESC, j.id DESC LIMIT p_most) e
            WHERE p_status IS NULL OR s.status = p_status
        ), running AS (
            SELECT j.id FROM pipeline.running_jobs j JOIN wanted w ON w.workflow = j.workflow AND w.phase = j.phase
            WHERE j.id < p_before AND (p_status IS NULL OR p_status = 'running')
        ), waiting AS (
            SELECT o.job_id AS id FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
            WHERE o.job_id < p_before AND o.job_id >= coalesce(list_jobs.floor, '00000000-0000-0000-0000-000000000000')
              AND o.phase_id IN (SELECT w.id FROM wanted w) AND j.status = 'pending'
              AND (p_status IS NULL OR p_status = 'pending')
            ORDER BY o.job_id DESC LIMIT p_most
        )
        SELECT f.id FROM (SELECT id FROM resting UNION ALL SELECT id FROM running
                          UNION ALL SELECT id FROM waiting) f
        WHERE f.id >= coalesce(list_jobs.floor, '00000000-0000-0000-0000-000000000000')
        ORDER BY f.id DESC LIMIT p_most);
END $$;
