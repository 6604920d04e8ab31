-- Every way to submit ends here, inside the caller's transaction: the job and the intent to send it
-- commit together with the caller's own rows, or not at all.
CREATE OR REPLACE FUNCTION pipeline.first_phase(p_workflow text) RETURNS pipeline.phases LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_phase pipeline.phases;
BEGIN
    SELECT * INTO v_phase FROM pipeline.phases WHERE workflow = p_workflow AND position = 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'PL001',
            MESSAGE = format('unknown workflow %L', p_workflow),
            HINT = coalesce('known workflows: ' || (SELECT string_agg(DISTINCT workflow, ', ') FROM pipeline.phases)
                            || '; "pipeline migrate" registers those of PIPELINE_WORKFLOWS',
                            'no workflow is registered yet: run "pipeline migrate"');
    END IF;
    RETURN v_phase;
END $$;

-- p_keys: one key a job, or null. p_unique: how long a job keeps its key: null, for as long as it is there; 'open', until it
-- has ended; an interval such as '1 hour'. 'replace' is as 'open', but a job that waits unsent gets the new body, and one
-- that was sent leaves its key to a new job. p_debounce: as 'replace', not due before so long after the last submit.
-- Without a key these take one from the body. p_tags: words to find the jobs by. p_expires: a job that has not begun by
-- then fails. The answers are in the order of the bodies; for a key that another job keeps, that job.
CREATE OR REPLACE FUNCTION pipeline.submit_many(
    p_workflow text, p_bodies jsonb[], p_priority integer DEFAULT 0, p_batch uuid DEFAULT NULL,
    p_traceparent text DEFAULT NULL, p_keys text[] DEFAULT NULL, p_due timestamptz DEFAULT NULL,
    p_rate_limit text DEFAULT NULL, p_unique text DEFAULT NULL, p_debounce interval DEFAULT NULL,
    p_tags text[] DEFAULT NULL, p_expires timestamptz DEFAULT NULL)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_phase pipeline.phases := pipeline.first_phase(p_workflow);
    v_ids uuid[];
    v_body jsonb;
    v_id uuid;
    v_trace text;
    v_span text;
    v_count integer := 0;
    v_moment timestamptz := coalesce(p_due, now() + p_debounce);
    v_due timestamptz := v_moment;
    v_reason text := CASE WHEN v_moment IS NOT NULL THEN 'scheduled' END;
    v_expires timestamptz := CASE WHEN p_expires < 'infinity' THEN greatest(p_expires, now()) END;
    v_tags text[] := nullif(p_tags, '{}');
    v_replaces boolean := coalesce(p_unique = 'replace', false) OR p_debounce IS NOT NULL;
    v_keys text[];
    v_holders uuid[];
    v_field text;
    -- The one that was given, or the phase's; where its name is made from the body, each job has its own.
    v_limit text := coalesce(p_rate_limit, CASE WHEN position('{' IN v_phase.rate_limit) = 0 THEN v_phase.rate_limit END);
    v_template text := CASE WHEN v_limit IS NULL THEN v_phase.rate_limit END;
BEGIN
    IF p_priority NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION USING ERRCODE = 'PL002', MESSAGE = format('priority %s is outside 0 … 9', p_priority),
            HINT = '0 is the default, 9 goes first';
    END IF;
    -- Of one moment they are in no order: sorted, the order of ids is that of the bodies.
    v_ids := ARRAY(SELECT pipeline.new_id() AS id FROM generate_series(1, cardinality(p_bodies)) ORDER BY id);
    FOREACH v_body IN ARRAY coalesce(p_bodies, '{}') LOOP
        v_count := v_count + 1;
        IF pipeline.wrong_body(v_body, 65536) THEN
            PERFORM pipeline.refuse_body(v_body, v_count);
        END IF;
    END LOOP;
    PERFORM pipeline.refuse_tags(v_tags) WHERE v_tags IS NOT NULL;
    PERFORM pipeline.refuse_keys(p_keys, cardinality(p_bodies)) WHERE p_keys IS NOT NULL;
    IF p_traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' THEN
        v_trace := split_part(p_traceparent, '-', 2);
        v_span := split_part(p_traceparent, '-', 3);
    END IF;
    IF p_batch IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pipeline.batches WHERE id = p_batch AND NOT sealed FOR UPDATE) THEN
        RAISE EXCEPTION USING ERRCODE = 'PL003', MESSAGE = format('batch %s is sealed or unknown', p_batch),
            HINT = 'open a new batch for further jobs';
    END IF;
    IF v_phase.turns_id IS NOT NULL THEN
        v_field := (SELECT t.field FROM pipeline.turns t WHERE t.id = v_phase.turns_id);
        IF v_due IS NULL THEN
            v_due := 'infinity';
            v_reason := 'key';
        END IF;
    END IF;
    -- Under a rate limit with a rate a job waits for its place in the order, not for a time.
    IF v_due IS NULL AND pipeline.waits_at_limit(v_limit, v_phase.id) THEN
        v_due := 'infinity';
        v_reason := 'rate_limit';
    END IF;
    IF p_keys IS NOT NULL OR p_unique IS NOT NULL OR p_debounce IS NOT NULL THEN
        v_keys := pipeline.keys_of(p_bodies, p_keys, p_unique IS NOT NULL OR p_debounce IS NOT NULL);
        v_holders := pipeline.take_keys(p_workflow, v_keys, v_ids, pipeline.kept_until(p_unique, p_debounce), v_replaces);
    END IF;
    WITH added AS (
        INSERT INTO pipeline.jobs (id, workflow, phase, body, priority, batch_id, max_attempts, idempotency_key,
                          trace_id, span_id, next_retry_at, rate_limit, tags, expires_at)
        SELECT f.id, p_workflow, v_phase.phase, f.body, p_priority, p_batch, v_phase.max_attempts, f.key,
               coalesce(v_trace, replace(f.id::text, '-', '')),
               coalesce(v_span, right(replace(f.id::text, '-', ''), 16)), v_moment,
               CASE WHEN v_template IS NULL THEN v_limit ELSE pipeline.limit_name(v_template, f.body) END, v_tags, v_expires
        FROM unnest(v_ids, p_bodies, v_keys, v_holders) AS f(id, body, key, holder)
        WHERE f.holder IS NULL OR f.holder = f.id
        RETURNING jobs.id, jobs.body, jobs.rate_limit
    )
    INSERT INTO pipeline.outbox (job_id, phase_id, priority, due_at, reason, rate_limit, expires_at, turns_id, key, has_turn)
    SELECT a.id, v_phase.id, p_priority, CASE WHEN w.waits THEN 'infinity' ELSE v_due END, CASE WHEN w.waits THEN 'rate_limit' ELSE v_reason END,
           CASE WHEN v_field IS NULL THEN a.rate_limit END, v_expires,
           v_phase.turns_id, CASE WHEN v_field IS NOT NULL THEN pipeline.key_in(a.body, v_field) END, CASE WHEN v_field IS NOT NULL THEN false END
    FROM added a CROSS JOIN LATERAL (
        SELECT v_template IS NOT NULL AND v_due IS NULL AND pipeline.waits_at_limit(a.rate_limit, v_phase.id) AS waits) w;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_replaces THEN
        PERFORM pipeline.replace_unsent(v_holders, v_ids, p_bodies, p_priority, v_moment, v_due, v_reason, p_rate_limit, v_tags, v_expires);
    END IF;
    IF v_tags IS NOT NULL THEN
        INSERT INTO pipeline.tags (tag, job_id) SELECT t.tag, coalesce(i.holder, i.id) FROM unnest(v_ids, v_holders) AS i(id, holder)
        CROSS JOIN unnest(v_tags) AS t(tag) WHERE v_replaces OR i.holder IS NULL OR i.holder = i.id ON CONFLICT DO NOTHING;
    END IF;
    IF v_expires IS NOT NULL THEN
        PERFORM pipeline.announce_expiry(v_expires);
    END IF;
    IF p_batch IS NOT NULL THEN
        UPDATE pipeline.batches SET total = total + v_count, remaining = remaining + v_count WHERE id = p_batch;
    END IF;
    -- A job behind another one needs no wake-up of its own: the relay was woken for that one, looks until nothing is left,
    -- and looks again when this transaction has ended. Where the first of the keys is taken, it is not known which of
    -- these jobs is the first.
    IF v_count > 0 AND (v_phase.pool IS NOT NULL OR v_phase.throttle_count IS NOT NULL OR v_due IS NOT NULL
                        OR v_template IS NOT NULL OR v_keys IS NOT NULL OR pipeline.is_first(v_phase.id, p_priority::smallint, v_ids[1])) THEN
        PERFORM pipeline.wake();
    END IF;
    FOREACH v_id IN ARRAY coalesce(v_holders, v_ids) LOOP RETURN NEXT v_id; END LOOP;
END $$;

-- No object, too long, or nested so deeply that a reader gives up (a hundred levels take two hundred characters).
CREATE OR REPLACE FUNCTION pipeline.wrong_body(p_body jsonb, p_most integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_typeof(p_body) IS DISTINCT FROM 'object' OR (octet_length(p_body::text) > 200
        AND (octet_length(p_body::text) > p_most OR jsonb_path_exists(p_body, '$.**{100}')))
$$;

CREATE OR REPLACE FUNCTION pipeline.refuse_body(p_body jsonb, p_place bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF jsonb_typeof(p_body) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'PL004', MESSAGE = format('body %s is not a JSON object', p_place),
            HINT = 'send an object such as {"url": "https://example.org"}';
    END IF;
    IF jsonb_path_exists(p_body, '$.**{100}') THEN
        RAISE EXCEPTION USING ERRCODE = 'PL006', MESSAGE = format('body %s is nested 100 levels deep or more', p_place),
            HINT = 'store the data elsewhere and send a reference to it (a path, a key, an id)';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'PL005',
        MESSAGE = format('body %s has %s bytes, the limit is 65536', p_place, octet_length(p_body::text)),
        HINT = 'store the data elsewhere and send a reference to it (a path, a key, an id)';
END $$;

CREATE OR REPLACE FUNCTION pipeline.submit(p_workflow text, p_body jsonb DEFAULT '{}', p_priority integer DEFAULT 0,
    p_batch uuid DEFAULT NULL, p_traceparent text DEFAULT NULL, p_key text DEFAULT NULL,
    p_due timestamptz DEFAULT NULL, p_rate_limit text DEFAULT NULL, p_unique text DEFAULT NULL,
    p_debounce interval DEFAULT NULL, p_tags text[] DEFAULT NULL, p_expires timestamptz DEFAULT NULL)
RETURNS uuid LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT pipeline.submit_many(p_workflow, ARRAY[p_body], p_priority, p_batch, p_traceparent,
                                CASE WHEN p_key IS NOT NULL THEN ARRAY[p_key] END, p_due, p_rate_limit,
                                p_unique, p_debounce, p_tags, p_expires)
$$;

-- The one admission gate. Lets through what is due and has room, highest priority first, then oldest
-- first, marks it sent and returns what the envelope needs. Two relays share the rows, never a row.
-- p_but: queues that RabbitMQ refused to take messages for. p_sleeps: the relay is awake, or sleeps if there is nothing; null:
-- as it was. Written down before the look, so that whoever commits after it knows (pipeline.wake).
-- A relay that falls asleep gets one row without a job if there is nothing: the transactions below horizon that are still
-- open may have taken it for awake, and commit without waking anybody. What they had committed before is found by this look.
CREATE OR REPLACE FUNCTION pipeline.admit(p_sender integer, p_most integer, p_but text[] DEFAULT '{}', p_sleeps boolean DEFAULT NULL)
RETURNS TABLE (job_id uuid, queue text, actor text, send bigint, attempt integer, max_attempts integer,
               priority smallint, body jsonb, trace_id text, span_id text, sent_at timestamptz, horizon bigint, open integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_jobs uuid[];
    v_phases integer[];
    v_throttled integer[] := '{}';
BEGIN
    IF p_sleeps IS NOT NULL THEN
        PERFORM setval('pipeline.relay_asleep', CASE WHEN p_sleeps THEN 1 ELSE 2 END)
        FROM pipeline.relay_asleep a WHERE (a.last_value = 1) <> p_sleeps;
    END IF;
    IF p_sleeps THEN
        horizon := pg_current_xact_id()::text::bigint;
        open := pipeline.open_before(horizon);
    END IF;
    -- Nothing here waits for a lock: a row that somebody else has is left for the next look.
    IF EXISTS (SELECT 1 FROM pipeline.outbox d WHERE d.due_at <= now()) THEN
        -- A job with a key waits for its turn next. One whose rate limit has a rate waits for that, unless it waited for a
        -- permit of its own: it has that now.
        UPDATE pipeline.outbox o SET (due_at, reason, waits_for, rate_limit) = (
            SELECT CASE WHEN q.again OR o.has_turn IS FALSE THEN 'infinity'::timestamptz END,
                   CASE WHEN o.has_turn IS FALSE THEN 'key' WHEN q.again THEN 'rate_limit' ELSE o.reason END, NULL, l.name
            FROM (SELECT CASE WHEN o.waits_for IS NULL OR o.has_turn IS FALSE THEN o.rate_limit
                              ELSE (SELECT j.rate_limit FROM pipeline.jobs j WHERE j.id = o.job_id) END AS name) l
            CROSS JOIN LATERAL (SELECT o.reason IS DISTINCT FROM 'rate_limit' AND pipeline.waits_at_limit(l.name, o.phase_id) AS again) q)
        WHERE o.job_id = ANY (ARRAY(
            SELECT d.job_id FROM pipeline.outbox d WHERE d.due_at <= now() ORDER BY d.due_at LIMIT p_most FOR UPDATE SKIP LOCKED));
    END IF;
    IF EXISTS (SELECT 1 FROM pipeline.rate_limits WHERE paused_until > now()) THEN
        PERFORM pipeline.hold_rate_limited();
    END IF;
    PERFORM pipeline.give_turns(p_most);
    PERFORM pipeline.admit_rate_limited(p_most);
    IF EXISTS (SELECT 1 FROM pipeline.phases WHERE throttle_count IS NOT NULL) THEN
        v_throttled := pipeline.hold_throttled();
    END IF;
    -- Step by step, with the rows of each in an array: in one statement the planner would have to guess how many of
    -- those who wait are picked, and guesses from what waited when the table was analysed.
    WITH picked AS MATERIALIZED (
    SELECT w.job_id, w.priority, w.seq, gate.id AS phase_id,
           gate.pool IS NULL OR pipeline.take_place(gate.id, gate.pool, w.job_id) AS goes
    FROM (SELECT ph.id, ph.pool, least(pipeline.capacity(ph), p_most) AS room FROM pipeline.phases_waited_for() ph
          WHERE ph.queue <> ALL (p_but) AND (ph.throttle_count IS NULL OR ph.id = ANY (v_throttled)) OFFSET 0) gate
    CROSS JOIN LATERAL (
        SELECT o.job_id, o.priority, o.seq FROM pipeline.outbox o
        WHERE o.phase_id = gate.id AND o.sent_at IS NULL AND o.due_at IS NULL
            AND (o.expires_at <= now()) IS NOT TRUE
        ORDER BY o.priority DESC, o.seq LIMIT greatest(gate.room, 0) FOR UPDATE SKIP LOCKED) w
    )
    SELECT array_agg(p.job_id ORDER BY p.priority DESC, p.seq), array_agg(p.phase_id ORDER BY p.priority DESC, p.seq)
    INTO v_jobs, v_phases FROM picked p WHERE p.goes;
    IF v_jobs IS NULL THEN
        IF p_sleeps THEN RETURN NEXT; END IF;
        RETURN;
    END IF;
    UPDATE pipeline.outbox o SET sent_at = now(), sent_by = p_sender, reason = NULL WHERE o.job_id = ANY (v_jobs);
    IF v_throttled <> '{}' THEN
        PERFORM pipeline.count_sent(v_throttled, v_phases);
    END IF;
    RETURN QUERY
    SELECT j.id, ph.queue, ph.actor, j.send, j.attempts + 1, j.max_attempts, j.priority, j.body, j.trace_id, j.span_id, now(), NULL::bigint, NULL::integer
    FROM unnest(v_jobs, v_phases) WITH ORDINALITY AS a(job, phase, place)
         JOIN pipeline.jobs j ON j.id = a.job JOIN pipeline.phases ph ON ph.id = a.phase
    ORDER BY a.place;
END $$;
