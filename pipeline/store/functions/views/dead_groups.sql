-- Failed jobs grouped by cause, in the order of their names, from the group after the one given. The index is
-- skipped through from group to group; each is counted up to p_cap. over_time, samples and last_at are of its newest
-- jobs, 200 of them and fewer on a large page; first_at is when its oldest one failed.
CREATE OR REPLACE FUNCTION pipeline.dead_groups(p_only text, p_workflow text, p_phase text, p_cause text,
                                                p_most integer, p_cap integer)
RETURNS TABLE (workflow text, phase text, cause text, jobs integer, first_at timestamptz, last_at timestamptz,
               over_time jsonb, samples jsonb)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    workflow := coalesce(p_workflow, p_only, '');
    phase := coalesce(p_phase, '');
    cause := coalesce(p_cause, '');
    FOR i IN 1 .. p_most LOOP
        SELECT j.workflow, j.failed_in, j.cause INTO workflow, phase, cause FROM pipeline.jobs j
        WHERE j.failed_in IS NOT NULL
          AND (j.workflow, j.failed_in, j.cause) > (dead_groups.workflow, dead_groups.phase, dead_groups.cause)
        ORDER BY j.workflow, j.failed_in, j.cause LIMIT 1;
        EXIT WHEN NOT FOUND OR workflow <> p_only;
        SELECT g.jobs, g.first_at, g.last_at, g.over_time, g.samples INTO jobs, first_at, last_at, over_time, samples
        FROM pipeline.dead_group(workflow, phase, cause, p_cap, greatest(least(200, 5000 / p_most), 3)) g;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION pipeline.dead_group(p_workflow text, p_phase text, p_cause text, p_cap integer, p_newest integer)
RETURNS TABLE (jobs integer, first_at timestamptz, last_at timestamptz, over_time jsonb, samples jsonb) LANGUAGE sql STABLE AS $$
    WITH newest AS MATERIALIZED (
        SELECT j.id, j.completed_at, j.error_message, j.body FROM pipeline.jobs j
        WHERE j.workflow = p_workflow AND j.failed_in = p_phase AND j.cause = p_cause
        ORDER BY j.id DESC LIMIT p_newest
    )
    SELECT (SELECT count(*)::integer FROM (
                SELECT 1 FROM pipeline.jobs j WHERE j.workflow = p_workflow AND j.failed_in = p_phase
                AND j.cause = p_cause LIMIT p_cap) c),
           (SELECT j.completed_at FROM pipeline.jobs j WHERE j.workflow = p_workflow AND j.failed_in = p_phase
                AND j.cause = p_cause ORDER BY j.workflow, j.failed_in, j.cause, j.id LIMIT 1),
           (SELECT max(n.completed_at) FROM newest n),
           (SELECT jsonb_agg(jsonb_build_object('at', h.at, 'jobs', h.n) ORDER BY h.at) FROM (
                SELECT date_trunc('hour', n.completed_at) AS at, count(*) AS n FROM newest n
                GROUP BY 1 ORDER BY 1 DESC LIMIT 48) h),
           (SELECT jsonb_agg(jsonb_build_object('id', s.id, 'failed_at', s.completed_at,
                'error', left(s.error_message, 500), 'body', left(s.body::text, 2000)) ORDER BY s.id DESC) FROM (
                SELECT * FROM newest n ORDER BY n.id DESC LIMIT 3) s)
$$;
