-- Jobs that nobody has begun by their time fail, with the reason, and never start; one that has begun is left alone, and
-- so is one that somebody has locked. A message that is out carries an older delivery number: it is acknowledged as a duplicate.
CREATE OR REPLACE FUNCTION pipeline.expire(p_jobs uuid[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_job pipeline.jobs;
    v_count integer := 0;
    v_error text;
BEGIN
    FOR v_job IN SELECT j.* FROM pipeline.jobs j
                 WHERE j.id = ANY (p_jobs) AND j.status = 'pending' AND j.fence = 0 AND j.expires_at <= now()
                 ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        v_error := to_char(v_job.expires_at AT TIME ZONE 'UTC', '"Expired: it had not begun by "YYYY-MM-DD HH24:MI:SS" UTC"');
        v_job.fence := v_job.fence + 1;
        v_job.sent_at := (SELECT o.sent_at FROM pipeline.outbox o WHERE o.job_id = v_job.id);
        PERFORM pipeline.record_attempt(v_job, 'expired', v_error);
        UPDATE pipeline.jobs SET fence = v_job.fence, send = send + 1 WHERE id = v_job.id;
        PERFORM pipeline.end_failed(v_job, v_job.crashes, v_job.attempts, v_error);
        v_count := v_count + 1;
    END LOOP;
    RETURN v_count;
END $$;

-- For the leader of maintenance: expire what is due, and say after how many seconds to look again. Before that time the
-- next look costs nothing; a submit whose job expires earlier brings it forward and tells the leader. It is set before the
-- look, so that whoever submits from then on knows it; a job whose transaction was open meanwhile is found half a minute
-- later. The gate and the claim refuse an expired job in any case.
CREATE OR REPLACE FUNCTION pipeline.expire_due(p_most integer DEFAULT 1000) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    v_seconds double precision;
    v_found uuid[];
    v_count integer;
BEGIN
    SELECT l.last_value / 1000.0 - extract(epoch FROM now()) INTO v_seconds FROM pipeline.expiry_look l;
    IF v_seconds > 0 THEN RETURN v_seconds; END IF;
    v_seconds := NULL;
    PERFORM setval('pipeline.expiry_look', (extract(epoch FROM now()) * 1000)::bigint + 30000);
    v_found := ARRAY(SELECT o.job_id FROM pipeline.outbox o WHERE o.expires_at <= now() ORDER BY o.expires_at LIMIT p_most);
    IF v_found <> '{}' THEN
        v_count := pipeline.expire(v_found);
        -- What somebody has locked is asked for again.
        v_seconds := CASE WHEN v_count = p_most THEN 0 WHEN v_count < cardinality(v_found) THEN 0.5 END;
    END IF;
    PERFORM pipeline.plan_expiry(least((SELECT min(o.expires_at) FROM pipeline.outbox o WHERE o.expires_at > now()),
                                       now() + make_interval(secs => v_seconds)));
    RETURN (SELECT l.last_value / 1000.0 - extract(epoch FROM now()) FROM pipeline.expiry_look l);
END $$;

-- The next look is at this moment, if it was to be later. Null: nothing is to be brought forward.
CREATE OR REPLACE FUNCTION pipeline.plan_expiry(p_at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    -- Not a moment before it.
    v_at bigint := ceil(extract(epoch FROM p_at) * 1000);
BEGIN
    PERFORM setval('pipeline.expiry_look', v_at) FROM pipeline.expiry_look l WHERE l.last_value > v_at;
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION pipeline.announce_expiry(p_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pipeline.plan_expiry(p_at) THEN
        PERFORM pg_notify('pipeline_maintenance', 'expiry');
    END IF;
END $$;
