-- Failed jobs grouped by cause, in the order of their names, no more than p_most groups. The index is skipped through from
-- group to group; each is counted up to p_cap. last_at is the last failure among its twenty newest jobs.
CREATE OR REPLACE FUNCTION pipeline.dead_groups(p_only text, p_most integer, p_cap integer)
RETURNS TABLE (workflow text, phase text, cause text, jobs integer, last_at timestamptz)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    workflow := coalesce(p_only, '');
    phase := '';
    cause := '';
    FOR i IN 1 .. p_most LOOP
        SELECT j.workflow, j.failed_in, j.cause INTO workflow, phase, cause FROM pipeline.jobs j
        WHERE j.failed_in IS NOT NULL
          AND (j.workflow, j.failed_in, j.cause) > (dead_groups.workflow, dead_groups.phase, dead_groups.cause)
        ORDER BY j.workflow, j.failed_in, j.cause LIMIT 1;
        EXIT WHEN NOT FOUND OR workflow <> p_only;
        SELECT g.last_at, g.jobs INTO last_at, jobs FROM pipeline.dead_group(workflow, phase, cause, p_cap, 20) g;
        RETURN NEXT;
    END LOOP;
END $$;

-- One of them: over_time, samples and last_at are of its p_newest newest jobs; first_at is when its oldest one failed.
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
