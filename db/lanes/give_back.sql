-- These jobs will not make the calls they were promised. The lane itself is left alone, because a caller's transaction
-- may stay open: whoever asks next sees that the promises are gone (pipeline_lane_next).
CREATE OR REPLACE FUNCTION pipeline_give_back_turns(p_jobs uuid[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM turns WHERE job_id = ANY (p_jobs)
$$;
