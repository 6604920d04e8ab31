-- No moment of the schedule gets a job until it is resumed; those in between are not made up. Jobs that exist are left alone.
-- Returns whether this call paused it.
CREATE OR REPLACE FUNCTION pipeline.pause_schedule(p_workflow text, p_name text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pipeline.find_schedule(p_workflow, p_name);
    UPDATE pipeline.schedules s SET paused_at = now(), waits = false, revision = s.revision + 1, updated_at = now()
    WHERE s.workflow = p_workflow AND s.name = p_name AND s.paused_at IS NULL;
    RETURN FOUND;
END $$;

-- Ends the pause of a schedule: its moments count from now on. Returns whether it was paused.
CREATE OR REPLACE FUNCTION pipeline.resume_schedule(p_workflow text, p_name text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pipeline.find_schedule(p_workflow, p_name);
    UPDATE pipeline.schedules s SET paused_at = NULL, planned = false, next_at = now(), problem = NULL, revision = s.revision + 1, updated_at = now()
    WHERE s.workflow = p_workflow AND s.name = p_name AND s.paused_at IS NOT NULL;
    IF FOUND THEN
        PERFORM pg_notify('pipeline_maintenance', 'schedule');
        RETURN true;
    END IF;
    RETURN false;
END $$;

-- Submits a job of the schedule now, beside those of its moments, whatever runs and also while it is paused. Returns the job.
CREATE OR REPLACE FUNCTION pipeline.run_schedule(p_workflow text, p_name text)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_schedule pipeline.schedules := pipeline.find_schedule(p_workflow, p_name);
    v_job uuid := pipeline.submit_scheduled(v_schedule, NULL);
BEGIN
    UPDATE pipeline.schedules s SET last_job = v_job, revision = s.revision + 1,
        open_jobs = CASE WHEN s.overlap = 'allow' THEN '{}' ELSE pipeline.unfinished(s.open_jobs || s.last_job) || v_job END
    WHERE s.id = v_schedule.id;
    RETURN v_job;
END $$;

-- Makes up for the moments of a schedule from p_from to p_until, both included: the leader of maintenance submits a job for
-- each that has none, a hundred at a time, or one after another where jobs of the schedule may not overlap. Also while it is
-- paused. One backfill at a time.
CREATE OR REPLACE FUNCTION pipeline.backfill(p_workflow text, p_name text, p_from timestamptz, p_until timestamptz)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_schedule pipeline.schedules := pipeline.find_schedule(p_workflow, p_name);
    v_wrong text := CASE
        WHEN (p_from <= p_until) IS NOT TRUE THEN 'a backfill begins before it ends'
        WHEN p_until > now() THEN 'a backfill ends in the past: what is to come is the schedule''s own'
        WHEN p_until - p_from > interval '366 days' THEN 'a backfill is of up to 366 days'
        WHEN v_schedule.backfill_at IS NOT NULL THEN format('a backfill until %s is under way', v_schedule.backfill_until)
    END;
BEGIN
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PL022', MESSAGE = v_wrong;
    END IF;
    UPDATE pipeline.schedules s SET backfill_at = p_from, backfill_until = p_until, revision = s.revision + 1, updated_at = now()
    WHERE s.id = v_schedule.id;
    PERFORM pg_notify('pipeline_maintenance', 'schedule');
END $$;

-- The schedule, locked for the rest of the transaction.
CREATE OR REPLACE FUNCTION pipeline.find_schedule(p_workflow text, p_name text) RETURNS pipeline.schedules LANGUAGE plpgsql AS $$
DECLARE
    v_schedule pipeline.schedules;
BEGIN
    SELECT s.* INTO v_schedule FROM pipeline.schedules s WHERE s.workflow = p_workflow AND s.name = p_name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'PL023', MESSAGE = format('there is no schedule %s of %s', p_name, p_workflow),
            HINT = 'its schedules: ' || coalesce((SELECT string_agg(s.name, ', ' ORDER BY s.name) FROM (
                SELECT n.name FROM pipeline.schedules n WHERE n.workflow = p_workflow ORDER BY 1 LIMIT 30) s), 'none');
    END IF;
    RETURN v_schedule;
END $$;

-- Schedules, and how they are; of one workflow, or of all (null), in the order of their names from the one after p_after on.
CREATE OR REPLACE FUNCTION pipeline.list_schedules(p_workflow text DEFAULT NULL, p_name text DEFAULT NULL,
    p_after text[] DEFAULT NULL, p_most integer DEFAULT 1000)
RETURNS TABLE (workflow text, name text, source text, cron text, every double precision, timezone text, body jsonb, priority smallint,
               tags text[], overlap text, catch_up integer, catch_up_for double precision, next_at timestamptz, waits boolean,
               backfill_at timestamptz, backfill_until timestamptz, paused_at timestamptz, last_at timestamptz, last_job uuid, problem text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.workflow, s.name, s.source, s.cron, extract(epoch FROM s.every)::double precision, s.timezone, s.body, s.priority, s.tags, s.overlap,
           s.catch_up, extract(epoch FROM s.catch_up_for)::double precision,
           CASE WHEN s.planned AND s.paused_at IS NULL AND s.next_at < 'infinity' THEN s.next_at END,
           s.waits, s.backfill_at, s.backfill_until, s.paused_at, s.last_at, s.last_job, s.problem
    FROM pipeline.schedules s
    WHERE s.workflow = coalesce(p_workflow, s.workflow) AND s.name = coalesce(p_name, s.name)
        AND (p_after IS NULL OR (s.workflow, s.name) > (p_after[1], p_after[2]))
    ORDER BY s.workflow, s.name LIMIT p_most
$$;

-- The moment that a job was scheduled for; null for a job that no moment of a schedule submitted.
CREATE OR REPLACE FUNCTION pipeline.moment(p_job uuid)
RETURNS timestamptz LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT substring(j.idempotency_key FROM '^schedule:[a-z0-9_-]+@([0-9TZ:.-]+)$')::timestamptz FROM pipeline.jobs j WHERE j.id = p_job
$$;
