-- These jobs will not make the calls they were promised. The rate limit itself is left alone, because a caller's transaction
-- may stay open: whoever asks next sees that the promises are gone (pipeline.next_permit_at).
CREATE OR REPLACE FUNCTION pipeline.return_permits(p_jobs uuid[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM pipeline.permits WHERE job_id = ANY (p_jobs)
$$;
