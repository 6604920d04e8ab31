-- Why this attempt failed, in the transaction of its transition. Said once: an attempt that is settled again after an
-- unknown COMMIT keeps what it said first. Of a job that fails again and again the newest twenty are kept.
CREATE OR REPLACE FUNCTION pipeline.keep_log(p_id uuid, p_fence bigint, p_traceback text, p_lines text)
RETURNS void LANGUAGE sql AS $$
    DELETE FROM pipeline.attempt_logs WHERE job_id = p_id AND fence <= (
        SELECT l.fence FROM pipeline.attempt_logs l WHERE l.job_id = p_id ORDER BY l.fence DESC OFFSET 19 LIMIT 1);
    INSERT INTO pipeline.attempt_logs (job_id, fence, traceback, lines) VALUES (p_id, p_fence, p_traceback, p_lines)
    ON CONFLICT DO NOTHING;
$$;
