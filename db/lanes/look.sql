-- How far ahead of its turn a job is let through the gate: as much as a worker sleeps for a turn (HORIZON in
-- pipeline/flow/lanes.py), so that nearly every job that comes to a worker can make its call and none has to come twice.
CREATE OR REPLACE FUNCTION pipeline_horizon() RETURNS double precision LANGUAGE sql IMMUTABLE AS $$ SELECT 0.25::double precision $$;

-- The first moment of a lane that is nobody's. Turns further away than the horizon are promised by a row in turns: where
-- those rows are gone (cancelled, deleted, failed), the moments behind the last promise are free again. Nearer ones may
-- be in the hands of a worker, and are not given out twice.
CREATE OR REPLACE FUNCTION pipeline_lane_next(p_lane lanes, p_now timestamptz) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_near timestamptz := p_now + make_interval(secs => pipeline_horizon() + 1 / p_lane.rate);
BEGIN
    IF p_lane.next_at <= v_near OR p_lane.rate IS NULL THEN RETURN p_lane.next_at; END IF;
    RETURN least(p_lane.next_at, greatest(v_near, (
        SELECT t.at + make_interval(secs => 1 / p_lane.rate) FROM turns t
        WHERE t.lane = p_lane.name ORDER BY t.at DESC LIMIT 1)));
END $$;

-- The lanes, and of each the phases, whose jobs wait for the lane: a step through the index for each.
CREATE OR REPLACE FUNCTION pipeline_lanes_waited_for() RETURNS TABLE (lane text, phase_id integer)
LANGUAGE plpgsql STABLE ROWS 4 AS $$
#variable_conflict use_column
BEGIN
    lane := '';
    LOOP
        SELECT o.lane INTO lane FROM outbox o
        WHERE o.lane > pipeline_lanes_waited_for.lane AND o.sent_at IS NULL ORDER BY o.lane LIMIT 1;
        EXIT WHEN NOT FOUND;
        phase_id := 0;
        LOOP
            SELECT o.phase_id INTO phase_id FROM outbox o
            WHERE o.lane = pipeline_lanes_waited_for.lane AND o.due_at = 'infinity' AND o.sent_at IS NULL
                AND o.phase_id > pipeline_lanes_waited_for.phase_id ORDER BY o.phase_id LIMIT 1;
            EXIT WHEN NOT FOUND;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END $$;

-- What a lane has room for at the gate of a phase (null: no limit), and if somebody must wait: the seconds until it is
-- worth looking again, or whether that depends on messages that nobody has claimed yet. Each phase is counted for
-- itself: one that is paused, or has no worker, keeps nobody else of its lane waiting.
CREATE OR REPLACE FUNCTION pipeline_lane_look(p_lane text, p_phase integer,
    OUT room integer, OUT seconds double precision, OUT unclaimed boolean)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_lane lanes;
    v_ahead double precision;
    v_turns integer;
    v_out integer;
    v_portion integer;
BEGIN
    unclaimed := false;
    SELECT * INTO v_lane FROM lanes WHERE name = p_lane;
    IF v_lane.paused_until > now() THEN
        room := 0;
        seconds := CASE WHEN v_lane.paused_until < 'infinity' THEN extract(epoch FROM v_lane.paused_until - now()) END;
        RETURN;
    END IF;
    seconds := 0;
    IF v_lane.rate IS NULL THEN RETURN; END IF;
    v_ahead := extract(epoch FROM greatest(pipeline_lane_next(v_lane, now()),
                                           now() - make_interval(secs => (v_lane.burst - 1) / v_lane.rate)) - now());
    v_turns := CASE WHEN v_ahead > pipeline_horizon() THEN 0 ELSE floor((pipeline_horizon() - v_ahead) * v_lane.rate) + 1 END;
    SELECT count(*) INTO v_out FROM (
        SELECT 1 FROM outbox o WHERE o.lane = p_lane AND o.sent_at IS NOT NULL AND o.phase_id = p_phase
            AND (SELECT j.status FROM jobs j WHERE j.id = o.job_id) <> 'running'
        UNION ALL
        SELECT 1 FROM outbox o WHERE o.lane = p_lane AND o.sent_at IS NULL AND o.due_at IS NULL AND o.phase_id = p_phase) s;
    room := greatest(v_turns - v_out, 0);
    -- Half a horizon's worth at a time: a fast lane is looked at eight times a second and not for each of its turns.
    v_portion := greatest(ceil(v_lane.rate * pipeline_horizon() / 2), 1);
    IF room >= v_portion THEN RETURN; END IF;
    IF v_out + v_portion > floor(pipeline_horizon() * v_lane.rate + v_lane.burst) THEN
        seconds := NULL; unclaimed := true;
        RETURN;
    END IF;
    -- Many slow lanes together do not wake the relay more often than this either.
    seconds := greatest((v_out + v_portion - 1) / v_lane.rate - pipeline_horizon() + v_ahead, 0.05);
END $$;

-- Called by the gate: let the first of each lane through, as many as have a turn soon.
CREATE OR REPLACE FUNCTION pipeline_let_through(p_most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_here record;
BEGIN
    FOR v_here IN
        SELECT w.lane, w.phase_id, least(l.room, p_most) AS room
        FROM pipeline_lanes_waited_for() w CROSS JOIN LATERAL pipeline_lane_look(w.lane, w.phase_id) l
    LOOP
        CONTINUE WHEN v_here.room = 0;
        -- As an array, which the planner takes for a short one: those who stay are not read.
        UPDATE outbox o SET due_at = NULL WHERE o.job_id = ANY (ARRAY(
            SELECT w.job_id FROM outbox w
            WHERE w.lane = v_here.lane AND w.due_at = 'infinity' AND w.sent_at IS NULL AND w.phase_id = v_here.phase_id
            ORDER BY w.priority DESC, w.seq LIMIT v_here.room FOR UPDATE SKIP LOCKED));
    END LOOP;
END $$;
