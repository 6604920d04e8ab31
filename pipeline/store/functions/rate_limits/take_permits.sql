-- Permits to call under a rate limit. A permit is a moment, rate of them a second; each may be used from its moment on and
-- until burst/rate later, so that no second ever sees more calls than rate + burst, however late they are made.
-- Permits that begin within p_horizon are granted: p_calls, or a tenth of a second's worth if that is more, for
-- the process to share out. A permit further away is kept for the job, which comes back at that moment.
-- granted null: no limit. granted 0: wait that long, for that reason.
-- An application may hold the rate limit's row: whoever meets that hears of it after a second and comes back.
CREATE OR REPLACE FUNCTION pipeline.take_permits(
    p_rate_limit text, p_job uuid, p_calls integer, p_horizon double precision,
    OUT granted integer, OUT first_in double precision, OUT spacing double precision, OUT grace double precision,
    OUT wait double precision, OUT reason text)
LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
    v_rate_limit pipeline.rate_limits;
    v_now timestamptz;
    v_phase integer;
    v_kept pipeline.permits;
    v_mine boolean;
    v_first timestamptz;
BEGIN
    SELECT ph.id INTO v_phase FROM pipeline.jobs j JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase WHERE j.id = p_job;
    PERFORM 1 FROM pipeline.rate_limits WHERE name = p_rate_limit FOR NO KEY UPDATE;
    IF NOT FOUND AND (pipeline.rate_limit_named(p_rate_limit, v_phase)).rate IS NOT NULL THEN
        INSERT INTO pipeline.rate_limits (name, template) VALUES (p_rate_limit, pipeline.template_of(p_rate_limit, v_phase)) ON CONFLICT (name) DO NOTHING;
        PERFORM 1 FROM pipeline.rate_limits WHERE name = p_rate_limit FOR NO KEY UPDATE;
    END IF;
    v_rate_limit := pipeline.rate_limit_named(p_rate_limit, v_phase);
    v_now := clock_timestamp();
    IF v_rate_limit.paused_until > v_now THEN
        granted := 0; wait := extract(epoch FROM least(v_rate_limit.paused_until, v_now + interval '366 days') - v_now);
        reason := v_rate_limit.pause_reason;
        RETURN;
    END IF;
    IF v_rate_limit.rate IS NULL THEN RETURN; END IF;
    spacing := 1 / v_rate_limit.rate;
    -- Several calls at once are one permit that begins with the last of them.
    grace := greatest(v_rate_limit.burst, p_calls) * spacing;
    SELECT * INTO v_kept FROM pipeline.permits WHERE job_id = p_job AND rate_limit = p_rate_limit;
    v_mine := v_kept.calls >= p_calls AND v_kept.until > v_now;
    v_first := greatest(pipeline.next_permit_at(v_rate_limit, v_now), v_now - make_interval(secs => grace - spacing));
    IF v_mine THEN
        first_in := extract(epoch FROM v_kept.at - v_now) - (v_kept.calls - 1) * spacing;
        granted := CASE WHEN v_kept.at <= v_now + make_interval(secs => p_horizon) THEN v_kept.calls ELSE 0 END;
    ELSE
        first_in := extract(epoch FROM v_first - v_now);
        granted := least(floor(greatest(p_horizon - first_in, -spacing) / spacing)::integer + 1,
                         greatest(p_calls, ceil(v_rate_limit.rate / 10)::integer));
        IF granted < p_calls THEN granted := 0; END IF;
    END IF;
    IF v_kept.job_id IS NOT NULL OR granted = 0 THEN
        -- A promise hangs on the job's row. If another transaction has that, it is about to end the job.
        PERFORM 1 FROM pipeline.jobs WHERE id = p_job FOR KEY SHARE SKIP LOCKED;
        IF NOT FOUND THEN
            granted := 0; wait := 0.5; reason := 'rate_limit';
            RETURN;
        END IF;
    END IF;
    IF v_kept.job_id IS NOT NULL AND (granted > 0 OR v_mine IS NOT TRUE) THEN
        DELETE FROM pipeline.permits WHERE job_id = p_job AND rate_limit = p_rate_limit;
    END IF;
    IF granted = 0 THEN
        wait := greatest(extract(epoch FROM v_kept.at - v_now), 0); reason := 'rate_limit';
    END IF;
    -- Also if it was back before its moment, which is still its own.
    IF v_mine THEN RETURN; END IF;
    IF granted = 0 THEN
        wait := greatest(first_in + (p_calls - 1) * spacing, 0);
        INSERT INTO pipeline.permits (job_id, rate_limit, calls, at, until)
        VALUES (p_job, p_rate_limit, p_calls, v_first + make_interval(secs => (p_calls - 1) * spacing),
                v_first + make_interval(secs => grace));
    END IF;
    UPDATE pipeline.rate_limits SET next_at = v_first + make_interval(secs => greatest(granted, p_calls) * spacing) WHERE name = p_rate_limit;
END $$;
