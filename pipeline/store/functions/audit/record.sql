-- What somebody does to jobs, phases, workers or schedules is written down here, in the same transaction.
CREATE OR REPLACE FUNCTION pipeline.record(
    p_who text, p_door text, p_origin text, p_action text, p_subject text DEFAULT NULL, p_reason text DEFAULT NULL,
    p_jobs integer DEFAULT NULL, p_ids uuid[] DEFAULT '{}', p_detail jsonb DEFAULT NULL)
RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO pipeline.audit (who, door, origin, action, subject, reason, jobs, job_ids, detail)
    VALUES (left(p_who, 200), p_door, left(p_origin, 200), p_action, left(p_subject, 500), left(p_reason, 1000), p_jobs,
            coalesce(p_ids, '{}'), p_detail)
    RETURNING id
$$;

-- Those older than that go, a bounded number a call.
CREATE OR REPLACE FUNCTION pipeline.prune_audit(p_older interval, p_most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_gone integer;
BEGIN
    DELETE FROM pipeline.audit WHERE id = ANY (ARRAY(
        SELECT a.id FROM pipeline.audit a WHERE a.at < now() - p_older ORDER BY a.at LIMIT p_most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    RETURN v_gone;
END $$;
