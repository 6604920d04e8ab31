-- A call's turn on a lane. Turns are moments, rate of them a second; each may be used from its moment on and
-- until burst/rate later, so that no second ever sees more calls than rate + burst, however late they are made.
-- Turns that begin within p_horizon are granted: p_calls, or a tenth of a second's worth if that is more, for
-- the process to share out. A turn further away is kept for the job, which comes back at that moment.
-- granted null: no limit. granted 0: wait that long, for that reason.
CREATE OR REPLACE FUNCTION pipeline_turn(
    p_lane text, p_job uuid, p_calls integer, p_horizon double precision,
    OUT granted integer, OUT first_in double precision, OUT spacing double precision, OUT grace double precision,
    OUT wait double precision, OUT reason text)
LANGUAGE plpgsql AS $$
DECLARE
    v_lane lanes;
    v_now timestamptz;
    v_kept turns;
    v_first timestamptz;
BEGIN
    SELECT * INTO v_lane FROM lanes WHERE name = p_lane FOR UPDATE;
    v_now := clock_timestamp();
    IF v_lane.paused_until > v_now THEN
        granted := 0; wait := extract(epoch FROM v_lane.paused_until - v_now); reason := v_lane.pause_reason;
        RETURN;
    END IF;
    IF v_lane.rate IS NULL THEN RETURN; END IF;
    spacing := 1 / v_lane.rate;
    -- Several calls at once are one turn that begins with the last of them.
    grace := greatest(v_lane.burst, p_calls) * spacing;
    DELETE FROM turns WHERE job_id = p_job AND lane = p_lane RETURNING * INTO v_kept;
    IF v_kept.calls >= p_calls AND v_kept.until > v_now THEN
        granted := v_kept.calls;
        first_in := extract(epoch FROM v_kept.at - v_now) - (v_kept.calls - 1) * spacing;
        RETURN;
    END IF;
    v_first := greatest(v_lane.next_at, v_now - make_interval(secs => grace - spacing));
    first_in := extract(epoch FROM v_first - v_now);
    granted := least(floor((p_horizon - first_in) / spacing)::integer + 1, greatest(p_calls, ceil(v_lane.rate / 10)::integer));
    IF granted < p_calls THEN
        granted := p_calls;
        INSERT INTO turns (job_id, lane, calls, at, until)
        VALUES (p_job, p_lane, p_calls, v_first + make_interval(secs => (p_calls - 1) * spacing),
                v_first + make_interval(secs => grace));
        wait := greatest(first_in + (p_calls - 1) * spacing, 0); reason := 'rate_limit';
    END IF;
    UPDATE lanes SET next_at = v_first + make_interval(secs => granted * spacing) WHERE name = p_lane;
    IF wait IS NOT NULL THEN granted := 0; END IF;
END $$;
