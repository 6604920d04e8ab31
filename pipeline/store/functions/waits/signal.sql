-- Tell a job of an event, in the caller's transaction. Answers: 'delivered', the job waited for it and continues; 'kept',
-- until the job waits for it, or it came after the wait's time was over; 'final', the job has ended; 'unknown_job'.
CREATE OR REPLACE FUNCTION pipeline.signal(p_job uuid, p_name text, p_body jsonb DEFAULT '{}')
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c_most constant integer := 1000;
    v_ended boolean;
BEGIN
    IF p_name IS NULL OR length(p_name) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION USING ERRCODE = 'PL011', MESSAGE = 'the name of an event has 1 to 200 characters',
            HINT = 'use the name that the phase waits for: job.wait_for("approved")';
    END IF;
    IF octet_length(p_body::text) > 65536 OR jsonb_path_exists(p_body, '$.**{100}') THEN
        RAISE EXCEPTION USING ERRCODE = 'PL011', MESSAGE = format('the body of event %L has %s bytes, or too many levels', p_name, octet_length(p_body::text)),
            HINT = 'the limits are 65536 bytes and 100 levels: store the data elsewhere and send a reference to it';
    END IF;
    -- The job's row first, as everywhere: whoever begins to wait has it, too, and looks for signals after that.
    SELECT j.completed_at IS NOT NULL INTO v_ended FROM pipeline.jobs j WHERE j.id = p_job FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN 'unknown_job'; END IF;
    IF v_ended THEN RETURN 'final'; END IF;
    IF (SELECT count(*) FROM pipeline.signals s WHERE s.job_id = p_job) >= c_most THEN
        RAISE EXCEPTION USING ERRCODE = 'PL011', MESSAGE = format('job %s has been told of %s events, which is the limit', p_job, c_most),
            HINT = 'send what comes often to a job of its own';
    END IF;
    INSERT INTO pipeline.signals (job_id, name, body) VALUES (p_job, p_name, coalesce(p_body, 'null'));
    RETURN CASE WHEN pipeline.deliver(p_job) THEN 'delivered' ELSE 'kept' END;
END $$;

-- Give the job what it waits for, if it was told of that: the oldest first, each once. The caller holds the job's row.
CREATE OR REPLACE FUNCTION pipeline.deliver(p_job uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_signal record;
BEGIN
    SELECT s.seq, s.body, o.waits_for INTO v_signal FROM pipeline.outbox o JOIN pipeline.signals s ON s.job_id = o.job_id
    WHERE o.job_id = p_job AND s.taken_at IS NULL AND o.waits_for = 'event:' || s.name ORDER BY s.seq LIMIT 1;
    IF NOT FOUND OR NOT pipeline.end_wait(p_job, v_signal.waits_for, v_signal.body, 'signalled') THEN RETURN false; END IF;
    UPDATE pipeline.signals s SET taken_at = now() WHERE s.job_id = p_job AND s.seq = v_signal.seq;
    RETURN true;
END $$;

-- When the attempts at the phase began of which p_fence is one; null: of none.
CREATE OR REPLACE FUNCTION pipeline.phase_began(p_job pipeline.jobs, p_fence bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        (SELECT min(t.started_at) FROM pipeline.attempts t WHERE t.job_id = p_job.id AND t.fence <= p_fence AND t.fence > coalesce(
            (SELECT max(u.fence) FROM pipeline.attempts u WHERE u.job_id = p_job.id AND u.fence < p_fence AND u.outcome = 'succeeded'), 0)),
        CASE WHEN p_job.fence = p_fence THEN p_job.locked_at END)
$$;

-- What a link (job.event_link) can do: 'open'; 'used', the job was told of the event since the phase that made the link
-- began (p_fence null: ever), by the link or by anybody; 'final', 'unknown_job'.
CREATE OR REPLACE FUNCTION pipeline.link_state(p_job uuid, p_name text, p_fence bigint DEFAULT NULL)
RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((
        SELECT CASE WHEN j.completed_at IS NOT NULL THEN 'final'
                    -- One that came earlier may have been taken by the wait that the link is for.
                    WHEN EXISTS (SELECT 1 FROM pipeline.signals s WHERE s.job_id = p_job AND s.name = p_name
                                 AND greatest(s.at, s.taken_at) >= coalesce(pipeline.phase_began(j, p_fence), '-infinity'))
                    THEN 'used' ELSE 'open' END
        FROM pipeline.jobs j WHERE j.id = p_job), 'unknown_job')
$$;

-- As pipeline.signal, once: the link's state if that is not 'open'.
CREATE OR REPLACE FUNCTION pipeline.signal_by_link(p_job uuid, p_name text, p_body jsonb, p_fence bigint DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_state text;
BEGIN
    -- Of two clicks the second waits here, and sees what the first did.
    PERFORM 1 FROM pipeline.jobs j WHERE j.id = p_job FOR NO KEY UPDATE;
    v_state := pipeline.link_state(p_job, p_name, p_fence);
    RETURN CASE WHEN v_state = 'open' THEN pipeline.signal(p_job, p_name, p_body) ELSE v_state END;
END $$;
