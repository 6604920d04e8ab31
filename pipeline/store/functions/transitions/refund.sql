-- The outside system was sick, not these jobs: give back one failed execution for each time a job is named.
-- One that failed for good by it starts again. Returns how many it could help; what another transaction holds is left.
CREATE OR REPLACE FUNCTION pipeline.refund(p_jobs uuid[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_free uuid[] := ARRAY(SELECT j.id FROM pipeline.jobs j WHERE j.id = ANY (p_jobs) ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED);
    v_count integer;
BEGIN
    PERFORM pipeline.replay(f.id) FROM (
        SELECT j.id FROM pipeline.jobs j WHERE j.id = ANY (v_free) AND j.status = 'failed' AND j.attempts >= j.max_attempts
        ORDER BY j.id) f;
    WITH named AS (
        SELECT a.id, count(*)::integer AS times FROM unnest(p_jobs) AS a(id) WHERE a.id = ANY (v_free) GROUP BY a.id
    ), given AS (
        UPDATE pipeline.jobs j SET attempts = greatest(j.attempts - n.times, 0), updated_at = now()
        FROM named n WHERE j.id = n.id AND j.completed_at IS NULL RETURNING 1
    )
    SELECT count(*) INTO v_count FROM given;
    RETURN v_count;
END $$;
