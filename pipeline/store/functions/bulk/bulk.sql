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
    IF NOT FOUND THEN RETURN false; END IF;
    IF p_state = 'stopped' THEN DELETE FROM pipeline.bulk_held h WHERE h.action_id = p_id; END IF;
    PERFORM pg_notify('pipeline_maintenance', 'bulk');
    RETURN true;
END $$;

-- The next part of each that runs. Returns the seconds until the next look. Nobody is waited for: a job that somebody else
-- holds is put aside, and its action comes back to it.
CREATE OR REPLACE FUNCTION pipeline.step_bulk_actions(p_most integer DEFAULT 500) RETURNS double precision
LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
DECLARE
    v_one pipeline.bulk_actions;
    v_pause double precision := 3600;
BEGIN
    FOR v_one IN SELECT * FROM pipeline.bulk_actions WHERE ended_at IS NULL AND state = 'running' AND action <> 'canary'
                 ORDER BY id FOR UPDATE SKIP LOCKED LOOP
        v_pause := least(v_pause, pipeline.step_bulk(v_one, p_most));
    END LOOP;
    RETURN v_pause;
END $$;

CREATE OR REPLACE FUNCTION pipeline.step_bulk(p_one pipeline.bulk_actions, p_most integer) RETURNS double precision
LANGUAGE plpgsql AS $$
DECLARE
    -- After a stall no rate bursts.
    v_elapsed double precision := least(extract(epoch FROM now() - p_one.step_at), greatest(1, 1 / p_one.per_second));
    v_allowed integer := least(p_most, coalesce(floor(v_elapsed * p_one.per_second), p_most))::integer;
    v_place uuid;
    v_ids uuid[];
    v_done integer;
    v_over boolean;
BEGIN
    IF v_allowed < 1 THEN RETURN greatest(1 / p_one.per_second - v_elapsed, 0.01); END IF;
    IF p_one.walked THEN
        SELECT h.ids, h.done INTO v_ids, v_done FROM pipeline.step_held(p_one, v_allowed) h;
    ELSE
        SELECT f.ids, f.done, f.place INTO v_ids, v_done, v_place FROM pipeline.step_found(p_one, v_allowed) f;
    END IF;
    v_over := v_place IS NULL AND NOT EXISTS (SELECT 1 FROM pipeline.bulk_held h WHERE h.action_id = p_one.id);
    UPDATE pipeline.bulk_actions SET done = done + v_done, place = v_place, walked = v_place IS NULL,
        state = CASE WHEN v_over THEN 'done' ELSE state END, ended_at = CASE WHEN v_over THEN now() END,
        step_at = CASE WHEN per_second IS NULL THEN now()
                       ELSE now() - make_interval(secs => v_elapsed - v_allowed / per_second) END,
        audit_id = pipeline.record_part(audit_id, v_done, v_ids)
    WHERE id = p_one.id;
    RETURN CASE WHEN v_over THEN 3600
                -- Whoever holds what is left says nothing when that ends.
                WHEN p_one.walked AND v_ids = '{}' THEN greatest(1, 1 / p_one.per_second)
                WHEN p_one.per_second IS NULL THEN 0.01
                ELSE greatest(1 / p_one.per_second, 0.2) END;
END $$;

-- The next part of what matches. What is held is put aside; if something that belongs to the jobs is held, such as the child
-- of one that is cancelled, then all of the part, and each is tried by itself.
CREATE OR REPLACE FUNCTION pipeline.step_found(p_one pipeline.bulk_actions, p_most integer,
                                               OUT ids uuid[], OUT done integer, OUT place uuid) LANGUAGE plpgsql AS $$
DECLARE
    v_part uuid[];
BEGIN
    SELECT p.ids, p.place INTO v_part, place FROM pipeline.bulk_part(p_one, p_most) p;
    BEGIN
        ids := ARRAY(SELECT j.id FROM pipeline.jobs j WHERE j.id = ANY (v_part) ORDER BY j.id FOR UPDATE SKIP LOCKED);
        done := pipeline.act_in_bulk(p_one, ids);
    EXCEPTION WHEN lock_not_available THEN
        ids := '{}';
        done := 0;
    END;
    INSERT INTO pipeline.bulk_held (action_id, job_id)
    SELECT p_one.id, i FROM unnest(v_part) AS i WHERE NOT i = ANY (ids) ON CONFLICT DO NOTHING;
END $$;

-- What was put aside, whichever was tried longest ago first. At most one of them costs the wait for a lock.
CREATE OR REPLACE FUNCTION pipeline.step_held(p_one pipeline.bulk_actions, p_most integer, OUT ids uuid[], OUT done integer)
LANGUAGE plpgsql AS $$
DECLARE
    c_looked_at constant integer := 1000;
    v_tried uuid[] := ARRAY(SELECT h.job_id FROM pipeline.bulk_held h WHERE h.action_id = p_one.id
                            ORDER BY h.tried_at, h.job_id LIMIT c_looked_at);
    v_id uuid;
BEGIN
    ids := '{}';
    done := 0;
    FOR v_id IN SELECT j.id FROM unnest(v_tried) WITH ORDINALITY AS t(id, place) JOIN pipeline.jobs j ON j.id = t.id
                ORDER BY t.place LIMIT p_most FOR UPDATE OF j SKIP LOCKED LOOP
        BEGIN
            done := done + pipeline.act_in_bulk(p_one, ARRAY[v_id]);
            ids := ids || v_id;
        EXCEPTION WHEN lock_not_available THEN
            v_tried := ARRAY[v_id];
            EXIT;
        END;
    END LOOP;
    DELETE FROM pipeline.bulk_held h WHERE h.action_id = p_one.id AND h.job_id = ANY (v_tried || ids)
        AND (h.job_id = ANY (ids) OR NOT EXISTS (SELECT 1 FROM pipeline.jobs j WHERE j.id = h.job_id));
    UPDATE pipeline.bulk_held h SET tried_at = now()
    WHERE h.action_id = p_one.id AND h.job_id = ANY (v_tried) AND cardinality(ids) < p_most;
END $$;

-- Do it with jobs whose rows the caller has locked. One that was put aside may have changed meanwhile: what has failed or
-- ended since the action began, or ended in another way, is left alone.
CREATE OR REPLACE FUNCTION pipeline.act_in_bulk(p_one pipeline.bulk_actions, p_ids uuid[]) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_ids uuid[];
BEGIN
    IF p_one.action = 'cancel' THEN
        RETURN pipeline.cancel_many(p_ids, coalesce(p_one.reason, 'cancelled by request'));
    END IF;
    v_ids := ARRAY(SELECT j.id FROM pipeline.jobs j WHERE j.id = ANY (p_ids) AND j.completed_at <= p_one.at
                   AND j.status = coalesce(p_one.filter ->> 'status', 'failed') ORDER BY j.id);
    IF p_one.action = 'replay' THEN
        RETURN (SELECT count(*) FROM pipeline.replay_many(v_ids));
    END IF;
    RETURN (SELECT count(*) FILTER (WHERE pipeline.discard(d.id, coalesce(p_one.reason, 'discarded'))) FROM unnest(v_ids) AS d(id));
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
