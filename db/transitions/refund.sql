-- The outside system was sick, not these jobs: give back one failed execution for each time a job is named.
-- One that failed for good by it starts again.
CREATE OR REPLACE FUNCTION pipeline_refund(p_jobs uuid[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_count integer;
BEGIN
    PERFORM pipeline_replay(f.id) FROM (
        SELECT j.id FROM jobs j WHERE j.id = ANY (p_jobs) AND j.status = 'failed' AND j.attempts >= j.max_attempts
        ORDER BY j.id) f;
    WITH held AS (
        SELECT j.id FROM jobs j WHERE j.id = ANY (p_jobs) AND j.completed_at IS NULL ORDER BY j.id FOR UPDATE
    ), named AS (
        SELECT a.id, count(*)::integer AS times FROM unnest(p_jobs) AS a(id) GROUP BY a.id
    ), given AS (
        UPDATE jobs j SET attempts = greatest(j.attempts - n.times, 0), updated_at = now()
        FROM held h JOIN named n ON n.id = h.id WHERE j.id = h.id RETURNING 1
    )
    SELECT count(*) INTO v_count FROM given;
    RETURN v_count;
END $$;
