-- Seconds until the next timed wait or pause ends or the next turn of a rate limit is near enough, and whether jobs wait at a
-- full queue, or behind messages of their rate limit that nobody has claimed (those that wait for a processor of a pool are
-- announced by whoever leaves one).
-- Null: nothing waits for a time. What is due and cannot be had, because another transaction holds the row, is looked at
-- again ten times a second at first and twice a second in the end; everybody else's time is told as ever.
CREATE OR REPLACE FUNCTION pipeline.next_due(OUT seconds double precision, OUT waiting boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_late double precision;
    v_here record;
BEGIN
    SELECT extract(epoch FROM least((SELECT min(due_at) FROM pipeline.outbox WHERE due_at > now() AND due_at < 'infinity'), p.ends, p.throttled) - now()),
           p.waiting
    INTO seconds, waiting
    FROM (SELECT min(ph.paused_until) FILTER (WHERE ph.paused_until > now() AND ph.paused_until < 'infinity') AS ends,
                 min(ph.throttle_from + make_interval(secs => ph.throttle_seconds)) FILTER (WHERE pipeline.throttle_left(ph) <= 0) AS throttled,
                 coalesce(bool_or(ph.pool IS NULL AND (ph.paused_until > now()) IS NOT TRUE AND coalesce(pipeline.throttle_left(ph), 1) > 0), false) AS waiting
          FROM pipeline.phases_waited_for() ph) p;
    v_late := extract(epoch FROM now() - (SELECT min(due_at) FROM pipeline.outbox WHERE due_at <= now()));
    IF v_late IS NOT NULL THEN
        PERFORM 1 FROM pipeline.outbox WHERE due_at <= now() ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED;
        seconds := least(seconds, CASE WHEN FOUND THEN 0 ELSE least(greatest(v_late / 10, 0.1), 0.5) END);
    END IF;
    SELECT * INTO v_here FROM pipeline.next_turn();
    seconds := least(seconds, v_here.seconds);
    waiting := waiting OR v_here.unclaimed;
    FOR v_here IN
        SELECT w.rate_limit, w.phase_id, l.seconds, l.unclaimed
        FROM pipeline.rate_limits_waited_for() w CROSS JOIN LATERAL pipeline.rate_limit_capacity(w.rate_limit, w.phase_id) l
    LOOP
        waiting := waiting OR v_here.unclaimed;
        IF v_here.seconds = 0 THEN
            PERFORM 1 FROM pipeline.outbox w
            WHERE w.rate_limit = v_here.rate_limit AND w.due_at = 'infinity' AND w.sent_at IS NULL AND w.phase_id = v_here.phase_id
            LIMIT 1 FOR UPDATE SKIP LOCKED;
            v_here.seconds := CASE WHEN FOUND THEN 0 ELSE 0.25 END;
        END IF;
        seconds := least(seconds, v_here.seconds);
    END LOOP;
END $$;
