-- Do something with all jobs that match, in the background. p_job: it alone is replayed at once, as a canary.
CREATE OR REPLACE FUNCTION pipeline.begin_bulk(
    p_who text, p_door text, p_origin text, p_action text, p_filter jsonb, p_total integer,
    p_per_second double precision DEFAULT NULL, p_reason text DEFAULT NULL, p_job uuid DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_id bigint;
    v_audit bigint;
BEGIN
    IF p_job IS NOT NULL AND NOT pipeline.replay(p_job) THEN RETURN NULL; END IF;
    v_audit := pipeline.record(p_who, p_door, p_origin, p_action, NULL, p_reason, CASE WHEN p_job IS NULL THEN 0 ELSE 1 END,
        CASE WHEN p_job IS NULL THEN '{}'::uuid[] ELSE ARRAY[p_job] END, p_filter || jsonb_strip_nulls(jsonb_build_object('per_second', p_per_second)));
    INSERT INTO pipeline.bulk_actions (who, door, origin, action, filter, per_second, reason, total, place, audit_id)
    VALUES (left(p_who, 200), p_door, left(p_origin, 200), p_action, p_filter, p_per_second, left(p_reason, 1000), p_total, p_job, v_audit)
    RETURNING id INTO v_id;
    PERFORM pg_notify('pipeline_maintenance', 'bulk');
    RETURN v_id;
END $$;

-- Pause, resume ('running') or stop one that has not ended. False if it has, or there is none.
CREATE OR REPLACE FUNCTION pipeline.steer_bulk(p_id bigint, p_state text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE pipeline.bulk_actions SET state = p_state, ended_at = CASE WHEN p_state = 'stopped' THEN now() END,
        step_at = CASE WHEN state = 'paused' THEN now() ELSE step_at END
    WHERE id = p_id AND ended_at IS NULL AND p_state IN ('running', 'paused', 'stopped');
    IF FOUND THEN PERFORM pg_notify('pipeline_maintenance', 'bulk'); END IF;
    RETURN FOUND;
END $$;

-- The next part of each that runs. Returns the seconds until the next look. A job that somebody else holds is waited for
-- half a second, and its action asked again.
CREATE OR REPLACE FUNCTION pipeline.step_bulk_actions(p_most integer DEFAULT 500) RETURNS double precision
LANGUAGE plpgsql SET lock_timeout = '500ms' AS $$
DECLARE
    v_one pipeline.bulk_actions;
    v_pause double precision := 3600;
BEGIN
    FOR v_one IN SELECT * FROM pipeline.bulk_actions WHERE ended_at IS NULL AND state = 'running' AND action <> 'canary'
                 ORDER BY id FOR UPDATE SKIP LOCKED LOOP
        BEGIN
            v_pause := least(v_pause, pipeline.step_bulk(v_one, p_most));
        EXCEPTION WHEN lock_not_available THEN
            v_pause := least(v_pause, 2);
        END;
    END LOOP;
    RETURN v_pause;
END $$;

CREATE OR REPLACE FUNCTION pipeline.step_bulk(p_one pipeline.bulk_actions, p_most integer) RETURNS double precision
LANGUAGE plpgsql AS $$
DECLARE
    -- After a stall no rate bursts.
    v_elapsed double precision := least(extract(epoch FROM now() - p_one.step_at), greatest(1, 1 / p_one.per_second));
    v_allowed integer := least(p_most, coalesce(floor(v_elapsed * p_one.per_second), p_most))::integer;
    v_ids uuid[];
    v_place uuid;
    v_done integer;
BEGIN
    IF v_allowed < 1 THEN RETURN greatest(1 / p_one.per_second - v_elapsed, 0.01); END IF;
    SELECT p.ids, p.place INTO v_ids, v_place FROM pipeline.bulk_part(p_one, v_allowed) p;
    v_done := CASE p_one.action
        WHEN 'cancel' THEN pipeline.cancel_many(v_ids, coalesce(p_one.reason, 'cancelled by request'))
        WHEN 'replay' THEN (SELECT count(*) FROM pipeline.replay_many(v_ids))
        ELSE (SELECT count(*) FILTER (WHERE pipeline.discard(d.id, coalesce(p_one.reason, 'discarded')))
              FROM unnest(v_ids) AS d(id)) END;
    UPDATE pipeline.bulk_actions SET done = done + v_done, place = v_place,
        state = CASE WHEN v_place IS NULL THEN 'done' ELSE state END, ended_at = CASE WHEN v_place IS NULL THEN now() END,
        step_at = CASE WHEN per_second IS NULL THEN now()
                       ELSE now() - make_interval(secs => v_elapsed - v_allowed / per_second) END,
        audit_id = pipeline.record_part(audit_id, v_done, v_ids)
    WHERE id = p_one.id;
    RETURN CASE WHEN v_place IS NULL THEN 3600 WHEN p_one.per_second IS NULL THEN 0.01 ELSE greatest(1 / p_one.per_second, 0.2) END;
END $$;

-- The next jobs, and where the part after them begins; null after the last. Of a group the oldest first, and none that
-- failed after it began.
CREATE OR REPLACE FUNCTION pipeline.bulk_part(p_one pipeline.bulk_actions, p_most integer, OUT ids uuid[], OUT place uuid)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    f jsonb := p_one.filter;
BEGIN
    IF f ? 'cause' THEN
        SELECT coalesce(array_agg(g.id ORDER BY g.id), '{}') INTO ids FROM (
            SELECT j.id FROM pipeline.jobs j
            WHERE j.workflow = f ->> 'workflow' AND j.failed_in = f ->> 'phase' AND j.cause = f ->> 'cause'
              AND (p_one.place IS NULL OR j.id > p_one.place) AND j.completed_at <= p_one.at
            ORDER BY j.id LIMIT p_most) g;
        place := CASE WHEN cardinality(ids) = p_most THEN ids[p_most] END;
        RETURN;
    END IF;
    SELECT coalesce(w.ids, '{}'), w.floor INTO ids, place FROM pipeline.find_jobs(
        f ->> 'workflow', f ->> 'phase', f ->> 'status', f ->> 'tag', (f ->> 'since')::timestamptz,
        least((f ->> 'until')::timestamptz, p_one.at), replace(f ->> 'id', '-', ''), f ->> 'error',
        coalesce(p_one.place, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), p_most) w;
    IF cardinality(ids) = p_most THEN place := ids[p_most]; END IF;
    ids := ARRAY(SELECT i FROM unnest(ids) AS i ORDER BY i);
END $$;

-- A part belongs to the entry of the audit that the action has, until that names a thousand jobs.
CREATE OR REPLACE FUNCTION pipeline.record_part(p_audit bigint, p_done integer, p_ids uuid[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint := p_audit;
BEGIN
    UPDATE pipeline.audit SET jobs = jobs + p_done, job_ids = job_ids || p_ids
    WHERE id = p_audit AND cardinality(job_ids) + cardinality(p_ids) <= 1000;
    IF NOT FOUND THEN
        INSERT INTO pipeline.audit (who, door, origin, action, subject, reason, jobs, job_ids, detail)
        SELECT a.who, a.door, a.origin, a.action, a.subject, a.reason, p_done, p_ids, a.detail
        FROM pipeline.audit a WHERE a.id = p_audit RETURNING id INTO v_id;
    END IF;
    RETURN v_id;
END $$;
