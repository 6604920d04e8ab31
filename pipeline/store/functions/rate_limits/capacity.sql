-- How far ahead of its permit a job is let through the gate: as much as a worker sleeps for a permit (HORIZON in
-- pipeline/journey/rate_limits.py), so that nearly every job that comes to a worker can make its call and none has to come twice.
CREATE OR REPLACE FUNCTION pipeline.horizon() RETURNS double precision LANGUAGE sql IMMUTABLE AS $$ SELECT 0.25::double precision $$;

-- The first moment of a rate limit that is nobody's. Permits further away than the horizon are promised by a row in permits: where
-- those rows are gone (cancelled, deleted, failed), the moments behind the last promise are free again. Nearer ones may
-- be in the hands of a worker, and are not given out twice.
CREATE OR REPLACE FUNCTION pipeline.next_permit_at(p_rate_limit pipeline.rate_limits, p_now timestamptz) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_near timestamptz := p_now + make_interval(secs => pipeline.horizon() + 1 / p_rate_limit.rate);
BEGIN
    IF p_rate_limit.next_at <= v_near OR p_rate_limit.rate IS NULL THEN RETURN p_rate_limit.next_at; END IF;
    RETURN least(p_rate_limit.next_at, greatest(v_near, (
        SELECT t.at + make_interval(secs => 1 / p_rate_limit.rate) FROM pipeline.permits t
        WHERE t.rate_limit = p_rate_limit.name ORDER BY t.at DESC LIMIT 1)));
END $$;

-- The rate limits, and of each the phases, whose jobs wait for the rate limit: a step through the index for each.
CREATE OR REPLACE FUNCTION pipeline.rate_limits_waited_for() RETURNS TABLE (rate_limit text, phase_id integer)
LANGUAGE plpgsql STABLE ROWS 4 AS $$
#variable_conflict use_column
BEGIN
    rate_limit := '';
    LOOP
        SELECT o.rate_limit INTO rate_limit FROM pipeline.outbox o
        WHERE o.rate_limit > rate_limits_waited_for.rate_limit AND o.sent_at IS NULL ORDER BY o.rate_limit LIMIT 1;
        EXIT WHEN NOT FOUND;
        phase_id := 0;
        LOOP
            SELECT o.phase_id INTO phase_id FROM pipeline.outbox o
            WHERE o.rate_limit = rate_limits_waited_for.rate_limit AND o.due_at = 'infinity' AND o.sent_at IS NULL
                AND o.phase_id > rate_limits_waited_for.phase_id ORDER BY o.phase_id LIMIT 1;
            EXIT WHEN NOT FOUND;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END $$;

-- What a rate limit has room for at the gate of a phase (null: no limit), and if somebody must wait: the seconds until it is
-- worth looking again, or whether that depends on messages that nobody has claimed yet. Each phase is counted for
-- itself: one that is paused, or has no worker, keeps nobody else of its rate limit waiting.
CREATE OR REPLACE FUNCTION pipeline.rate_limit_capacity(p_rate_limit text, p_phase integer,
    OUT room integer, OUT seconds double precision, OUT unclaimed boolean)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_rate_limit pipeline.rate_limits;
    v_ahead double precision;
    v_permits integer;
    v_out integer;
    v_portion integer;
    v_one_by_one integer;
BEGIN
    unclaimed := false;
    v_rate_limit := pipeline.rate_limit_named(p_rate_limit, p_phase);
    IF v_rate_limit.paused_until > now() THEN
        room := 0;
        seconds := CASE WHEN v_rate_limit.paused_until < 'infinity' THEN extract(epoch FROM v_rate_limit.paused_until - now()) END;
        RETURN;
    END IF;
    seconds := 0;
    v_one_by_one := pipeline.breaker_room(p_rate_limit);
    IF v_one_by_one IS NOT NULL THEN
        -- While it is open, what runs began before that, and says nothing. Once it has closed, so many run at once.
        room := greatest(v_one_by_one - pipeline.out_under_limit(p_rate_limit, p_phase, v_one_by_one > 1), 0);
        IF room = 0 THEN
            seconds := 1; unclaimed := true;
            RETURN;
        END IF;
    END IF;
    IF v_rate_limit.rate IS NULL THEN RETURN; END IF;
    v_out := pipeline.out_under_limit(p_rate_limit, p_phase, false);
    v_ahead := extract(epoch FROM greatest(pipeline.next_permit_at(v_rate_limit, now()),
                                           now() - make_interval(secs => (v_rate_limit.burst - 1) / v_rate_limit.rate)) - now());
    v_permits := CASE WHEN v_ahead > pipeline.horizon() THEN 0 ELSE floor((pipeline.horizon() - v_ahead) * v_rate_limit.rate) + 1 END;
    room := least(greatest(v_permits - v_out, 0), room);
    -- Half a horizon's worth at a time: a fast rate limit is looked at eight times a second and not for each of its permits.
    v_portion := greatest(ceil(v_rate_limit.rate * pipeline.horizon() / 2), 1);
    IF room >= v_portion THEN RETURN; END IF;
    IF v_out + v_portion > floor(pipeline.horizon() * v_rate_limit.rate + v_rate_limit.burst) THEN
        seconds := NULL; unclaimed := true;
        RETURN;
    END IF;
    -- Many slow rate limits together do not wake the relay more often than this either.
    seconds := greatest((v_out + v_portion - 1) / v_rate_limit.rate - pipeline.horizon() + v_ahead, 0.05);
END $$;

-- How many jobs of a rate limit were let through at the gate of a phase: those that are not claimed yet, or those that run as well.
CREATE OR REPLACE FUNCTION pipeline.out_under_limit(p_rate_limit text, p_phase integer, p_running boolean) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT count(*)::integer FROM (
        SELECT 1 FROM pipeline.outbox o WHERE o.rate_limit = p_rate_limit AND o.sent_at IS NOT NULL AND o.phase_id = p_phase
            AND (p_running OR (SELECT j.status FROM pipeline.jobs j WHERE j.id = o.job_id) <> 'running')
        UNION ALL
        SELECT 1 FROM pipeline.outbox o WHERE o.rate_limit = p_rate_limit AND o.sent_at IS NULL AND o.due_at IS NULL AND o.phase_id = p_phase) s
$$;

-- Called by the gate: let the first of each rate limit through, as many as have a permit soon.
CREATE OR REPLACE FUNCTION pipeline.admit_rate_limited(p_most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_here record;
BEGIN
    FOR v_here IN
        SELECT w.rate_limit, w.phase_id, least(l.room, p_most) AS room
        FROM pipeline.rate_limits_waited_for() w CROSS JOIN LATERAL pipeline.rate_limit_capacity(w.rate_limit, w.phase_id) l
    LOOP
        CONTINUE WHEN v_here.room = 0;
        -- As an array, which the planner takes for a short one: those who stay are not read.
        UPDATE pipeline.outbox o SET due_at = NULL WHERE o.job_id = ANY (ARRAY(
            SELECT w.job_id FROM pipeline.outbox w
            WHERE w.rate_limit = v_here.rate_limit AND w.due_at = 'infinity' AND w.sent_at IS NULL AND w.phase_id = v_here.phase_id
            ORDER BY w.priority DESC, w.seq LIMIT v_here.room FOR UPDATE SKIP LOCKED));
    END LOOP;
END $$;
