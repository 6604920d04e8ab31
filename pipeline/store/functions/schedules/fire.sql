-- For the leader of maintenance: the schedules that have something to do, but for p_but; and one row without an id, which says
-- after how many seconds the next one has. Moments that have come stand first, then two backfills: however much is made up
-- for, nobody's moment waits behind it. Nothing is locked: what the leader makes of them names the revision it has read.
CREATE OR REPLACE FUNCTION pipeline.due_schedules(p_most integer, p_but bigint[] DEFAULT '{}')
RETURNS TABLE (id bigint, revision bigint, name text, cron text, every double precision, timezone text, overlap text, catch_up integer,
               catch_up_for double precision, next_at timestamptz, planned boolean, paused boolean, backfill_at timestamptz,
               backfill_until timestamptz, at timestamptz, seconds double precision)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.id, s.revision, s.workflow || '.' || s.name, s.cron, extract(epoch FROM s.every)::double precision, s.timezone, s.overlap,
           s.catch_up, extract(epoch FROM s.catch_up_for)::double precision, nullif(s.next_at, 'infinity'), s.planned,
           s.paused_at IS NOT NULL, s.backfill_at, s.backfill_until, now(), NULL::double precision
    FROM pipeline.schedules s WHERE s.id = ANY (ARRAY(
        SELECT d.id FROM pipeline.schedules d WHERE d.look_at <= now() AND d.look_at < 'infinity' AND d.id <> ALL (p_but)
        ORDER BY d.look_at, d.id LIMIT p_most) || ARRAY(
        SELECT w.id FROM pipeline.schedules w WHERE w.waits AND w.id <> ALL (p_but)
            AND pipeline.unfinished(w.open_jobs || w.last_job) = '{}' LIMIT p_most) || ARRAY(
        SELECT b.id FROM pipeline.schedules b WHERE b.backfill_at IS NOT NULL AND NOT b.waits AND b.id <> ALL (p_but)
        ORDER BY b.backfill_at LIMIT 2))
    ORDER BY s.look_at > now(), s.look_at, s.id;
    at := now();
    seconds := least(
        (SELECT extract(epoch FROM s.look_at - now()) FROM pipeline.schedules s
         WHERE s.look_at > now() AND s.look_at < 'infinity' ORDER BY s.look_at LIMIT 1),
        -- The end of a job tells nobody that it was waited for here.
        (SELECT 1 FROM pipeline.schedules s WHERE s.waits LIMIT 1));
    RETURN NEXT;
END $$;

-- For the leader of maintenance: submit the jobs of these moments and move their schedules on, in one transaction. Each wish
-- has the id, revision and next_at that were read; its moments, oldest first; the next_at (null: never) and backfill_at that
-- follow; fills: the moments are a backfill's; problem: why there are none. Answers with those that were moved on. The others
-- have changed meanwhile, or somebody holds their row or that of a job to be cancelled: nobody waits for it here.
CREATE OR REPLACE FUNCTION pipeline.fire_schedules(p_wishes jsonb)
RETURNS TABLE (id bigint, submitted integer, verdict text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_wish record;
    v_schedule pipeline.schedules;
    v_open uuid[];
BEGIN
    FOR v_wish IN
        SELECT w.* FROM jsonb_to_recordset(p_wishes) AS w(id bigint, revision bigint, expected timestamptz, moments timestamptz[],
            next_at timestamptz, backfill_at timestamptz, fills boolean, problem text) ORDER BY w.id
    LOOP
        SELECT s.* INTO v_schedule FROM pipeline.schedules s
        WHERE s.id = v_wish.id AND s.revision = v_wish.revision AND s.next_at = coalesce(v_wish.expected, 'infinity') FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        id := v_wish.id;
        submitted := 0;
        v_open := CASE WHEN v_schedule.overlap = 'allow' THEN '{}'
                       ELSE pipeline.unfinished(v_schedule.open_jobs || v_schedule.last_job) END;
        verdict := pipeline.may_fire(v_schedule, v_wish.moments, v_wish.fills, v_open);
        CONTINUE WHEN verdict = 'locked';
        IF verdict = 'waits' THEN
            UPDATE pipeline.schedules s SET waits = true, open_jobs = v_open, revision = s.revision + 1, planned = s.planned OR NOT v_wish.fills,
                next_at = CASE WHEN v_wish.fills THEN s.next_at ELSE v_wish.moments[1] END WHERE s.id = v_schedule.id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF verdict = 'fires' THEN
            IF v_open <> '{}' THEN
                PERFORM pipeline.cancel_many(v_open, format('the next moment of schedule %s has come', v_schedule.name));
            END IF;
            FOR i IN 1 .. cardinality(v_wish.moments) LOOP
                v_schedule.last_job := pipeline.submit_scheduled(v_schedule, v_wish.moments[i]);
                submitted := submitted + 1;
            END LOOP;
            v_open := CASE WHEN v_schedule.overlap = 'allow' THEN '{}' ELSE ARRAY[v_schedule.last_job] END;
        END IF;
        UPDATE pipeline.schedules s SET revision = s.revision + 1, waits = false, open_jobs = v_open, last_job = v_schedule.last_job,
            last_at = CASE WHEN verdict = 'fires' AND NOT v_wish.fills THEN v_wish.moments[cardinality(v_wish.moments)] ELSE s.last_at END,
            planned = s.planned OR NOT v_wish.fills, next_at = coalesce(v_wish.next_at, 'infinity'), backfill_at = v_wish.backfill_at,
            backfill_until = CASE WHEN v_wish.backfill_at IS NOT NULL THEN s.backfill_until END,
            problem = CASE WHEN verdict = 'unknown' THEN 'its workflow has no phase: run "pipeline migrate" with its code' ELSE v_wish.problem END
        WHERE s.id = v_schedule.id;
        RETURN NEXT;
    END LOOP;
END $$;

-- 'fires': the jobs of these moments may be submitted, once what is open is cancelled. 'skipped', 'waits': not while earlier
-- jobs are open. 'unknown': the workflow is gone. 'locked': somebody holds a job that is to be cancelled. 'moves': no moments.
CREATE OR REPLACE FUNCTION pipeline.may_fire(p_schedule pipeline.schedules, p_moments timestamptz[], p_fills boolean, p_open uuid[])
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_locked integer;
BEGIN
    IF coalesce(cardinality(p_moments), 0) = 0 THEN RETURN 'moves'; END IF;
    IF NOT EXISTS (SELECT 1 FROM pipeline.phases ph WHERE ph.workflow = p_schedule.workflow AND ph.position = 1) THEN RETURN 'unknown'; END IF;
    IF p_open = '{}' THEN RETURN 'fires'; END IF;
    IF p_fills OR p_schedule.overlap = 'queue' THEN RETURN 'waits'; END IF;
    IF p_schedule.overlap = 'skip' THEN RETURN 'skipped'; END IF;
    SELECT count(*) INTO v_locked FROM (
        SELECT 1 FROM pipeline.jobs j WHERE j.id = ANY (p_open) ORDER BY j.id FOR UPDATE SKIP LOCKED) l;
    RETURN CASE WHEN v_locked = cardinality(p_open) THEN 'fires' ELSE 'locked' END;
END $$;

-- The job of a moment, or one beside the moments (null). The key says which moment it is for, and lets no other job have it.
CREATE OR REPLACE FUNCTION pipeline.submit_scheduled(p_schedule pipeline.schedules, p_moment timestamptz) RETURNS uuid LANGUAGE sql AS $$
    SELECT pipeline.submit(p_schedule.workflow, p_schedule.body, p_schedule.priority,
        p_key => 'schedule:' || p_schedule.name || to_char(p_moment AT TIME ZONE 'UTC', '"@"YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        p_tags => p_schedule.tags || ('schedule:' || p_schedule.name))
$$;

-- Those of them that have not ended.
CREATE OR REPLACE FUNCTION pipeline.unfinished(p_jobs uuid[]) RETURNS uuid[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT j.id FROM pipeline.jobs j WHERE j.id = ANY (p_jobs) AND j.completed_at IS NULL ORDER BY j.id)
$$;
