-- A throttled phase sends at most so many messages in so many seconds, counted from the first of them. Its jobs wait at the
-- gate, in order, and have no moment of their own: after a stall they go as slowly as ever.

-- How many more messages it may send now.
CREATE OR REPLACE FUNCTION pipeline.throttle_left(p_phase pipeline.phases) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_phase.throttle_from > now() - make_interval(secs => p_phase.throttle_seconds)
                THEN p_phase.throttle_count - p_phase.throttle_used ELSE p_phase.throttle_count END
$$;

-- The throttled phases at whose gate somebody waits, for whoever sends now. One that another transaction holds (another
-- relay, as a rule) sends nothing this time.
CREATE OR REPLACE FUNCTION pipeline.hold_throttled() RETURNS integer[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT ph.id FROM pipeline.phases ph
                 WHERE ph.id = ANY (ARRAY(SELECT w.id FROM pipeline.phases_waited_for() w
                                          WHERE w.throttle_count IS NOT NULL AND pipeline.throttle_left(w) > 0))
                 ORDER BY ph.id FOR NO KEY UPDATE SKIP LOCKED);
END $$;

-- Count what was sent, a phase for each message. The caller holds their rows.
CREATE OR REPLACE FUNCTION pipeline.count_sent(p_held integer[], p_phases integer[]) RETURNS void LANGUAGE sql AS $$
    UPDATE pipeline.phases ph
    SET throttle_used = ph.throttle_count - pipeline.throttle_left(ph) + s.n,
        throttle_from = CASE WHEN pipeline.throttle_left(ph) < ph.throttle_count THEN ph.throttle_from ELSE now() END
    FROM (SELECT p AS id, count(*)::integer AS n FROM unnest(p_phases) AS p WHERE p = ANY (p_held) GROUP BY p) s WHERE ph.id = s.id
$$;
