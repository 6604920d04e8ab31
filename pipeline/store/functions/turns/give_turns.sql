-- Jobs of a workflow with keys wait for their key's turn: in the outbox, with due_at = 'infinity' and no turn. The keys go
-- round: each gets one job a round, or its weight. Nothing else is counted anywhere: who is under way is who has a turn.

-- A job's key: a field of its body; what has none shares the key ''.
CREATE OR REPLACE FUNCTION pipeline.key_in(p_body jsonb, p_field text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN length(k.key) > 200 THEN 'sha256:' || encode(sha256(convert_to(k.key, 'UTF8')), 'hex') ELSE k.key END
    FROM (SELECT coalesce(p_body #>> string_to_array(p_field, '.'), '') AS key) k
$$;

-- The workflows, and of each the phases, whose jobs wait for a turn: a step through the index for each.
CREATE OR REPLACE FUNCTION pipeline.turns_waited_for() RETURNS TABLE (turns_id integer, phase_id integer)
LANGUAGE plpgsql STABLE ROWS 2 AS $$
#variable_conflict use_column
DECLARE
    v_next record;
BEGIN
    turns_id := 0; phase_id := 0;
    LOOP
        SELECT o.turns_id, o.phase_id INTO v_next FROM pipeline.outbox o
        WHERE o.has_turn IS FALSE AND o.due_at = 'infinity' AND o.waits_for IS NULL
            AND (o.turns_id, o.phase_id) > (turns_waited_for.turns_id, turns_waited_for.phase_id)
        ORDER BY o.turns_id, o.phase_id LIMIT 1;
        EXIT WHEN NOT FOUND;
        turns_id := v_next.turns_id; phase_id := v_next.phase_id;
        RETURN NEXT;
    END LOOP;
END $$;

-- How many more jobs may have a turn in a phase: so many that no worker waits for the relay, and no more, so that turns are
-- decided here and not in a queue. What runs does not count.
CREATE OR REPLACE FUNCTION pipeline.turns_left(p_turns integer, p_phase integer) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT greatest(64 - count(*), 0)::integer FROM (
        SELECT 1 FROM pipeline.outbox o WHERE o.turns_id = p_turns AND o.has_turn AND o.phase_id = p_phase
            AND (o.sent_at IS NULL OR (SELECT j.status FROM pipeline.jobs j WHERE j.id = o.job_id) <> 'running') LIMIT 64) s
$$;

-- How many jobs of this key may go now, apart from turns_left.
CREATE OR REPLACE FUNCTION pipeline.key_left(p_turns pipeline.turns, p_key text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_left integer := 1000;
BEGIN
    IF p_turns.rate_count IS NOT NULL AND EXISTS (
        SELECT 1 FROM pipeline.key_rates r WHERE r.turns_id = p_turns.id AND r.key = p_key AND r.next_at > now())
    THEN
        RETURN 0;
    END IF;
    IF p_turns.per_key IS NOT NULL THEN
        SELECT p_turns.per_key - count(*) INTO v_left FROM pipeline.outbox o
        WHERE o.turns_id = p_turns.id AND o.key = p_key AND o.has_turn;
    END IF;
    -- The oldest that has not ended, wherever it is: if it waits for something else, the others wait for it.
    IF p_turns.in_order AND NOT (
        SELECT o.has_turn IS FALSE AND o.due_at = 'infinity' AND o.waits_for IS NULL FROM pipeline.outbox o
        WHERE o.turns_id = p_turns.id AND o.key = p_key ORDER BY o.job_id LIMIT 1)
    THEN
        RETURN 0;
    END IF;
    RETURN greatest(least(v_left, p_turns.rate_count), 0);
END $$;

-- Called by the gate. One relay gives the turns of a workflow at a time; another one leaves them to it.
CREATE OR REPLACE FUNCTION pipeline.give_turns(p_most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_here record;
    v_turns pipeline.turns;
BEGIN
    FOR v_here IN SELECT w.turns_id, w.phase_id FROM pipeline.turns_waited_for() w JOIN pipeline.phases ph ON ph.id = w.phase_id
                  WHERE (ph.paused_until > now()) IS NOT TRUE ORDER BY w.turns_id, w.phase_id LOOP
        SELECT * INTO v_turns FROM pipeline.turns t WHERE t.id = v_here.turns_id FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        -- From here on statements see what the relay did that had the row before.
        PERFORM pipeline.go_round(v_turns, v_here.phase_id, least(pipeline.turns_left(v_turns.id, v_here.phase_id), p_most));
    END LOOP;
END $$;

-- Whose turn it is, from the key after the last one on, until p_room jobs have theirs or every key that waits has been asked.
-- Where few keys wait each gets its share of the room at once.
CREATE OR REPLACE FUNCTION pipeline.go_round(p_turns pipeline.turns, p_phase integer, p_room integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    -- Keys that may not go are stepped over; so many at a time, the others at the next look.
    c_most_asked constant integer := 500;
    v_room integer := p_room;
    v_keys text[] := '{}';
    v_left integer[] := '{}';
    v_weights integer[] := '{}';
    v_states pipeline.key_turns;
    v_key text := p_turns.last_key;
    v_from text := coalesce(p_turns.round_from, p_turns.last_key);
    v_passed boolean := v_key < v_from;
    v_asked integer := 0;
    v_goes integer;
    v_weight bigint;
BEGIN
    IF v_room <= 0 THEN RETURN; END IF;
    LOOP
        v_key := pipeline.next_key(p_turns.id, p_phase, v_key);
        IF v_key IS NULL AND NOT v_passed THEN
            v_passed := true;
            v_key := pipeline.next_key(p_turns.id, p_phase, NULL);
        END IF;
        IF v_key IS NULL OR (v_passed AND v_key > v_from) THEN
            v_asked := 0;
            EXIT;
        END IF;
        v_asked := v_asked + 1;
        SELECT * INTO v_states FROM pipeline.key_turns k WHERE k.turns_id = p_turns.id AND k.key = v_key;
        v_goes := CASE WHEN v_states.paused_until > now() THEN 0 ELSE pipeline.key_left(p_turns, v_key) END;
        IF v_goes > 0 THEN
            v_keys := v_keys || v_key;
            v_left := v_left || v_goes;
            v_weights := v_weights || coalesce(v_states.weight, 1);
        END IF;
        EXIT WHEN cardinality(v_keys) = v_room OR v_asked = c_most_asked;
    END LOOP;
    v_weight := (SELECT sum(w) FROM unnest(v_weights) AS w);
    FOR i IN 1 .. cardinality(v_keys) LOOP
        v_goes := pipeline.begin_turns(p_turns, p_phase, v_keys[i],
            least(v_left[i], v_room, ceil(p_room * v_weights[i] / v_weight::numeric)::integer));
        v_room := v_room - v_goes;
        v_key := v_keys[i];
        EXIT WHEN v_room <= 0;
    END LOOP;
    -- Where not every key was asked and nobody could go, the next look begins where this one ended (pipeline.next_turn).
    UPDATE pipeline.turns t SET last_key = n.last_key, round_from = n.round_from
    FROM (SELECT coalesce(v_key, '') AS last_key, CASE WHEN v_asked = c_most_asked AND v_room = p_room THEN v_from END AS round_from) n
    WHERE t.id = p_turns.id AND (t.last_key, t.round_from) IS DISTINCT FROM (n.last_key, n.round_from);
END $$;

-- The next key after this one (null: the first) of which somebody waits.
CREATE OR REPLACE FUNCTION pipeline.next_key(p_turns integer, p_phase integer, p_after text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_key text;
BEGIN
    -- Two statements, so that each is a step through the index.
    IF p_after IS NULL THEN
        SELECT o.key INTO v_key FROM pipeline.outbox o
        WHERE o.turns_id = p_turns AND o.phase_id = p_phase AND o.has_turn IS FALSE AND o.due_at = 'infinity' AND o.waits_for IS NULL
        ORDER BY o.turns_id, o.phase_id, o.key LIMIT 1;
    ELSE
        SELECT o.key INTO v_key FROM pipeline.outbox o
        WHERE o.turns_id = p_turns AND o.phase_id = p_phase AND o.has_turn IS FALSE AND o.due_at = 'infinity' AND o.waits_for IS NULL
            AND o.key > p_after
        ORDER BY o.turns_id, o.phase_id, o.key LIMIT 1;
    END IF;
    RETURN v_key;
END $$;

-- The first jobs of a key have their turn: they stand at the gate, or wait for their rate limit. Returns how many.
CREATE OR REPLACE FUNCTION pipeline.begin_turns(p_turns pipeline.turns, p_phase integer, p_key text, p_most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_jobs uuid[];
BEGIN
    IF p_turns.in_order THEN
        v_jobs := ARRAY(SELECT o.job_id FROM pipeline.outbox o WHERE o.job_id = (
                SELECT f.job_id FROM pipeline.outbox f WHERE f.turns_id = p_turns.id AND f.key = p_key ORDER BY f.job_id LIMIT 1)
            AND o.phase_id = p_phase AND o.has_turn IS FALSE AND o.due_at = 'infinity' AND o.waits_for IS NULL FOR UPDATE SKIP LOCKED);
    ELSE
        v_jobs := ARRAY(SELECT o.job_id FROM pipeline.outbox o
            WHERE o.turns_id = p_turns.id AND o.phase_id = p_phase AND o.key = p_key
                AND o.has_turn IS FALSE AND o.due_at = 'infinity' AND o.waits_for IS NULL
            ORDER BY o.priority DESC, o.seq LIMIT p_most FOR UPDATE SKIP LOCKED);
    END IF;
    IF cardinality(v_jobs) = 0 THEN RETURN 0; END IF;
    UPDATE pipeline.outbox o SET (has_turn, rate_limit, due_at, reason) = (
        SELECT true, j.rate_limit, CASE WHEN w.waits THEN 'infinity'::timestamptz END, CASE WHEN w.waits THEN 'rate_limit' END
        FROM pipeline.jobs j CROSS JOIN LATERAL (SELECT pipeline.waits_at_limit(j.rate_limit, p_phase) AS waits) w WHERE j.id = o.job_id)
    WHERE o.job_id = ANY (v_jobs);
    IF p_turns.rate_count IS NOT NULL THEN
        -- After a stall no more than ever: a moment that has passed is nobody's.
        INSERT INTO pipeline.key_rates (turns_id, key, next_at)
        VALUES (p_turns.id, p_key, now() + make_interval(secs => p_turns.rate_seconds / p_turns.rate_count * cardinality(v_jobs)))
        ON CONFLICT (turns_id, key) DO UPDATE SET next_at = excluded.next_at;
    END IF;
    RETURN cardinality(v_jobs);
END $$;

-- Whether the ends of jobs with these keys let somebody go. While a turn more is of no use to any worker, and no key waits for
-- one of these ends, the relay may sleep on.
CREATE OR REPLACE FUNCTION pipeline.may_have_turns(p_turns integer[], p_keys text[]) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM pipeline.turns_waited_for() w JOIN pipeline.turns t ON t.id = w.turns_id
        WHERE w.turns_id = ANY (p_turns) AND (pipeline.turns_left(w.turns_id, w.phase_id) >= 32
            OR (t.per_key IS NOT NULL AND EXISTS (
                SELECT 1 FROM unnest(p_turns, p_keys) AS e(turns_id, key) JOIN pipeline.outbox o
                    ON o.turns_id = e.turns_id AND o.key = e.key AND o.phase_id = w.phase_id
                        AND o.has_turn IS FALSE AND o.due_at = 'infinity' AND o.waits_for IS NULL
                WHERE e.turns_id = w.turns_id))));
END $$;

-- When somebody may have a turn of whom nobody tells: the seconds until a key's rate or pause lets it go, and whether jobs
-- wait only because messages before them are unclaimed.
CREATE OR REPLACE FUNCTION pipeline.next_turn(OUT seconds double precision, OUT unclaimed boolean) LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_here record;
BEGIN
    unclaimed := false;
    FOR v_here IN SELECT t.id, t.rate_count, t.round_from, w.phase_id FROM pipeline.turns_waited_for() w JOIN pipeline.turns t ON t.id = w.turns_id LOOP
        IF pipeline.turns_left(v_here.id, v_here.phase_id) = 0 THEN
            unclaimed := true;
        ELSIF v_here.round_from IS NOT NULL THEN
            seconds := 0;
        END IF;
        seconds := least(seconds, (
            SELECT extract(epoch FROM min(m.at) - now()) FROM (
                SELECT r.key, r.next_at AS at FROM pipeline.key_rates r WHERE r.turns_id = v_here.id AND v_here.rate_count IS NOT NULL
                UNION ALL
                SELECT k.key, k.paused_until FROM pipeline.key_turns k WHERE k.turns_id = v_here.id AND k.paused_until < 'infinity') m
            WHERE m.at > now() AND EXISTS (
                SELECT 1 FROM pipeline.outbox o WHERE o.turns_id = v_here.id AND o.phase_id = v_here.phase_id AND o.key = m.key
                    AND o.has_turn IS FALSE AND o.due_at = 'infinity' AND o.waits_for IS NULL)));
    END LOOP;
END $$;
