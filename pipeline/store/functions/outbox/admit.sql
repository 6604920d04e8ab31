-- The one admission gate. Lets through what is due and has room, highest priority first, then oldest
-- first, marks it sent and returns what the envelope needs. Two relays share the rows, never a row.
-- p_but: queues that RabbitMQ refused to take messages for. p_asleep: whether the relay goes to sleep if there is nothing;
-- written down before the look, so that whoever commits after it knows (pipeline.wake).
CREATE OR REPLACE FUNCTION pipeline.admit(p_sender integer, p_most integer, p_but text[] DEFAULT '{}', p_asleep boolean DEFAULT false)
RETURNS TABLE (job_id uuid, queue text, actor text, send bigint, attempt integer, max_attempts integer,
               priority smallint, body jsonb, trace_id text, span_id text, sent_at timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_jobs uuid[];
    v_phases integer[];
BEGIN
    PERFORM setval('pipeline.relay_asleep', CASE WHEN p_asleep THEN 1 ELSE 2 END)
    FROM pipeline.relay_asleep a WHERE (a.last_value = 1) <> p_asleep;
    -- Nothing here waits for a lock: a row that somebody else has is left for the next look.
    IF EXISTS (SELECT 1 FROM pipeline.outbox d WHERE d.due_at <= now()) THEN
        -- A job whose rate limit has a rate waits for it next, unless it waited for a turn of its own: that one has come.
        UPDATE pipeline.outbox o SET (due_at, reason) = (
            SELECT CASE WHEN q.again THEN 'infinity'::timestamptz END, CASE WHEN q.again THEN 'rate_limit' ELSE o.reason END
            FROM (SELECT o.reason IS DISTINCT FROM 'rate_limit' AND pipeline.has_rate(o.rate_limit) AS again) q)
        WHERE o.job_id = ANY (ARRAY(
            SELECT d.job_id FROM pipeline.outbox d WHERE d.due_at <= now() ORDER BY d.due_at LIMIT p_most FOR UPDATE SKIP LOCKED));
    END IF;
    IF EXISTS (SELECT 1 FROM pipeline.rate_limits WHERE paused_until > now()) THEN
        PERFORM pipeline.hold_rate_limited();
    END IF;
    PERFORM pipeline.admit_rate_limited(p_most);
    IF EXISTS (SELECT 1 FROM pipeline.phases WHERE throttle_count IS NOT NULL) THEN
        PERFORM pipeline.reserve();
    END IF;
    -- Step by step, with the rows of each in an array: in one statement the planner would have to guess how many of
    -- those who wait are picked, and guesses from what waited when the table was analysed.
    WITH picked AS MATERIALIZED (
    SELECT w.job_id, w.priority, w.seq, open.id AS phase_id,
           open.pool IS NULL OR pipeline.take_place(open.id, open.pool, w.job_id) AS goes
    FROM (SELECT ph.id, ph.pool, ph.throttle_count IS NULL AS unpaced, least(pipeline.capacity(ph), p_most) AS room FROM pipeline.phases_waited_for() ph
          WHERE ph.queue <> ALL (p_but) OFFSET 0) open
    CROSS JOIN LATERAL (
        SELECT o.job_id, o.priority, o.seq FROM pipeline.outbox o
        WHERE o.phase_id = open.id AND o.sent_at IS NULL AND o.due_at IS NULL AND (open.unpaced OR o.reserved)
        ORDER BY o.priority DESC, o.seq LIMIT greatest(open.room, 0) FOR UPDATE SKIP LOCKED) w
    )
    SELECT array_agg(p.job_id ORDER BY p.priority DESC, p.seq), array_agg(p.phase_id ORDER BY p.priority DESC, p.seq)
    INTO v_jobs, v_phases FROM picked p WHERE p.goes;
    UPDATE pipeline.outbox o SET sent_at = now(), sent_by = p_sender, reason = NULL WHERE o.job_id = ANY (v_jobs);
    RETURN QUERY
    SELECT j.id, ph.queue, ph.actor, j.send, j.attempts + 1, j.max_attempts, j.priority, j.body, j.trace_id, j.span_id, now()
    FROM unnest(v_jobs, v_phases) WITH ORDINALITY AS a(job, phase, place)
         JOIN pipeline.jobs j ON j.id = a.job JOIN pipeline.phases ph ON ph.id = a.phase
    ORDER BY a.place;
END $$;
