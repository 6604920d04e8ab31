-- For operators: takes a running job from its holder, at no cost, and lets another worker have it. The holder's fence
-- is no longer valid. Verdicts: 'reset', or the state that the job is in instead.
CREATE OR REPLACE FUNCTION pipeline.reset(p_job uuid, p_reason text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_job pipeline.jobs;
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs WHERE id = p_job FOR UPDATE;
    IF NOT FOUND THEN RETURN 'unknown_job'; END IF;
    IF v_job.status <> 'running' THEN RETURN v_job.status; END IF;
    PERFORM pipeline.crash(v_job.id, v_job.fence, 'stale', p_reason, false);
    RETURN 'reset';
END $$;
