-- Adds a schedule of a workflow, or changes the one of that name: a job at each moment of p_cron (five fields, or @daily and
-- the like, in p_timezone) or p_every (counted from midnight UTC on 1 January 1970). p_overlap, while the job of an earlier
-- moment has not ended: 'allow', 'skip' the new moment, 'queue' it, or 'cancel' the old job. Of moments that nobody could
-- submit in time, p_catch_up latest ones are made up, or those not older than p_catch_up_for. Moments count from now on; a
-- change of p_body alone and the like leaves them as they are. One that is declared in code is changed there.
CREATE OR REPLACE FUNCTION pipeline.schedule(p_workflow text, p_name text, p_cron text DEFAULT NULL, p_every interval DEFAULT NULL,
    p_timezone text DEFAULT NULL, p_body jsonb DEFAULT '{}', p_overlap text DEFAULT 'allow', p_catch_up integer DEFAULT NULL,
    p_catch_up_for interval DEFAULT NULL, p_priority integer DEFAULT 0, p_tags text[] DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pipeline.first_phase(p_workflow);
    PERFORM pipeline.refuse_schedule(p_name, p_cron, p_every, p_timezone, p_body, p_overlap, p_catch_up, p_catch_up_for, p_priority, p_tags);
    PERFORM pipeline.refuse_declared(p_workflow, p_name);
    PERFORM pipeline.write_schedule(p_workflow, p_name, 'run time', p_cron, p_every, p_timezone, p_body, p_overlap, p_catch_up,
                                    p_catch_up_for, p_priority, p_tags);
END $$;

-- What the leader needs no calendar to know. Fields of cron that mean nothing are found by it: the schedule says so then.
CREATE OR REPLACE FUNCTION pipeline.refuse_schedule(p_name text, p_cron text, p_every interval, p_timezone text, p_body jsonb,
    p_overlap text, p_catch_up integer, p_catch_up_for interval, p_priority integer, p_tags text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_wrong text := CASE
        WHEN coalesce(p_name, '') !~ '^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$' OR length(p_name) > 50
            THEN format('%L is not a name: up to 50 lower-case letters, digits, - and _', p_name)
        WHEN num_nonnulls(p_cron, p_every) <> 1 THEN 'a schedule has either a cron expression or an interval'
        WHEN p_cron !~ '^\s*(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|[^\s@]+(\s+\S+){4})\s*$'
            THEN format('%L is not a cron expression: it has five fields (minute hour day month weekday), such as 0 7 * * 1', p_cron)
        WHEN extract(month FROM p_every) + extract(year FROM p_every) <> 0 OR extract(epoch FROM p_every) NOT BETWEEN 1 AND 366 * 86400
            OR extract(epoch FROM p_every) % 1 <> 0 THEN format('an interval is whole seconds, at most 366 days, not %s', p_every)
        WHEN p_every IS NOT NULL AND p_timezone IS NOT NULL THEN 'an interval is the same in every time zone: leave the zone out'
        WHEN coalesce(p_overlap, '') NOT IN ('allow', 'skip', 'queue', 'cancel')
            THEN format('overlap is allow, skip, queue or cancel, not %s', coalesce(p_overlap, 'null'))
        WHEN num_nonnulls(p_catch_up, p_catch_up_for) > 1 THEN 'what is made up is either a number of moments or an age'
        WHEN p_catch_up NOT BETWEEN 0 AND 1000 THEN format('0 to 1000 moments are made up, not %s', p_catch_up)
        WHEN p_catch_up_for NOT BETWEEN interval '0' AND interval '31 days'
            THEN format('moments of up to 31 days ago are made up, not of %s', p_catch_up_for)
        WHEN coalesce(p_priority, -1) NOT BETWEEN 0 AND 9 THEN format('priority %s is outside 0 … 9', p_priority)
        WHEN cardinality(p_tags) > 19 THEN 'a schedule has at most 19 tags: its jobs get one more'
    END;
BEGIN
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PL020', MESSAGE = v_wrong;
    END IF;
    IF pipeline.wrong_body(p_body, 65536) THEN
        PERFORM pipeline.refuse_body(p_body, 1);
    END IF;
    PERFORM pipeline.refuse_tags(p_tags) WHERE p_tags IS NOT NULL;
    PERFORM now() AT TIME ZONE p_timezone;
EXCEPTION WHEN invalid_parameter_value THEN
    RAISE EXCEPTION USING ERRCODE = 'PL020', MESSAGE = format('there is no time zone %L', p_timezone),
        HINT = 'write a name such as Europe/Paris or UTC';
END $$;

CREATE OR REPLACE FUNCTION pipeline.refuse_declared(p_workflow text, p_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM pipeline.schedules s WHERE s.workflow = p_workflow AND s.name = p_name AND s.source = 'code') THEN
        RAISE EXCEPTION USING ERRCODE = 'PL021', MESSAGE = format('the schedule %s of %s is declared in code', p_name, p_workflow),
            HINT = 'change it there and run "pipeline migrate", or pause it';
    END IF;
END $$;

-- What differs is written, and only that. Other moments count from now on; a pause stays. One with a problem is tried anew.
CREATE OR REPLACE FUNCTION pipeline.write_schedule(p_workflow text, p_name text, p_source text, p_cron text, p_every interval,
    p_timezone text, p_body jsonb, p_overlap text, p_catch_up integer, p_catch_up_for interval, p_priority integer, p_tags text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_every interval := make_interval(secs => extract(epoch FROM p_every)::double precision);
    v_catch_up integer := CASE WHEN p_catch_up_for IS NULL THEN coalesce(p_catch_up, 1) END;
BEGIN
    INSERT INTO pipeline.schedules AS s (workflow, name, source, cron, every, timezone, body, overlap, catch_up, catch_up_for, priority, tags)
    VALUES (p_workflow, p_name, p_source, p_cron, v_every, coalesce(p_timezone, 'UTC'), p_body, p_overlap, v_catch_up,
            p_catch_up_for, p_priority, coalesce(p_tags, '{}'))
    ON CONFLICT ON CONSTRAINT schedules_name DO UPDATE SET
        source = excluded.source, cron = excluded.cron, every = excluded.every, timezone = excluded.timezone,
        body = excluded.body, overlap = excluded.overlap, catch_up = excluded.catch_up, catch_up_for = excluded.catch_up_for,
        priority = excluded.priority, tags = excluded.tags, revision = s.revision + 1, updated_at = now(), problem = NULL, waits = false,
        planned = s.planned AND pipeline.same_moments(s, excluded),
        next_at = CASE WHEN pipeline.same_moments(s, excluded) THEN s.next_at ELSE now() END
    WHERE s.problem IS NOT NULL OR (s.source, s.cron, s.every, s.timezone, s.body, s.overlap, s.catch_up, s.catch_up_for, s.priority, s.tags)
        IS DISTINCT FROM (excluded.source, excluded.cron, excluded.every, excluded.timezone, excluded.body, excluded.overlap,
                          excluded.catch_up, excluded.catch_up_for, excluded.priority, excluded.tags);
    IF FOUND THEN
        PERFORM pg_notify('pipeline_maintenance', 'schedule');
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pipeline.same_moments(p_known pipeline.schedules, p_new pipeline.schedules) RETURNS boolean LANGUAGE sql AS $$
    SELECT p_known.problem IS NULL
        AND (p_known.cron, p_known.every, p_known.timezone) IS NOT DISTINCT FROM (p_new.cron, p_new.every, p_new.timezone)
$$;

-- For 'pipeline migrate', and for the first worker of a new workflow: these workflows have exactly these schedules in code.
CREATE OR REPLACE FUNCTION pipeline.declare_schedules(p_workflows text[], p_schedules jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM pipeline.schedules s WHERE s.workflow = ANY (p_workflows) AND s.source = 'code' AND NOT EXISTS (
        SELECT 1 FROM jsonb_to_recordset(p_schedules) AS d(workflow text, name text) WHERE d.workflow = s.workflow AND d.name = s.name);
    PERFORM pipeline.write_schedule(d.workflow, d.name, 'code', d.cron, make_interval(secs => d.every), d.timezone, d.body, d.overlap,
                                    d.catch_up, make_interval(secs => d.catch_up_for), d.priority, d.tags)
    FROM jsonb_to_recordset(p_schedules) AS d(workflow text, name text, cron text, every double precision, timezone text, body jsonb,
        overlap text, catch_up integer, catch_up_for double precision, priority integer, tags text[]);
END $$;

-- Removes a schedule; its jobs stay. False if there is none. One that is declared in code is removed there.
CREATE OR REPLACE FUNCTION pipeline.unschedule(p_workflow text, p_name text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pipeline.refuse_declared(p_workflow, p_name);
    DELETE FROM pipeline.schedules s WHERE s.workflow = p_workflow AND s.name = p_name;
    RETURN FOUND;
END $$;
