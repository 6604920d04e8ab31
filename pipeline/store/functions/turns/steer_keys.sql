-- For operators: one key of a workflow among the others.
CREATE OR REPLACE FUNCTION pipeline.turns_of(p_workflow text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_id integer;
BEGIN
    SELECT t.id INTO v_id FROM pipeline.turns t WHERE t.workflow = p_workflow;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'PL001', MESSAGE = format('workflow %L has no keys', p_workflow),
            HINT = 'declare it with Workflow(…, key="customer") and run "pipeline migrate"';
    END IF;
    RETURN v_id;
END $$;

-- So many jobs of the key go in each of its turns, where one of another key goes; 1 is the default.
CREATE OR REPLACE FUNCTION pipeline.set_key_weight(p_workflow text, p_key text, p_weight integer)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (p_weight BETWEEN 1 AND 1000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'PL013', MESSAGE = format('weight %s is outside 1 … 1000', p_weight),
            HINT = '1 is the default: one job in each turn';
    END IF;
    INSERT INTO pipeline.key_turns AS k (turns_id, key, weight) VALUES (pipeline.turns_of(p_workflow), p_key, p_weight)
    ON CONFLICT (turns_id, key) DO UPDATE SET weight = excluded.weight WHERE k.weight <> excluded.weight;
END $$;

-- Jobs of the key that are under way go on; no other one begins before then.
CREATE OR REPLACE FUNCTION pipeline.pause_key(p_workflow text, p_key text, p_until timestamptz DEFAULT 'infinity')
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO pipeline.key_turns AS k (turns_id, key, paused_until) VALUES (pipeline.turns_of(p_workflow), p_key, p_until)
    ON CONFLICT (turns_id, key) DO UPDATE SET paused_until = excluded.paused_until
$$;

-- False if it was not paused.
CREATE OR REPLACE FUNCTION pipeline.resume_key(p_workflow text, p_key text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_was timestamptz;
BEGIN
    SELECT k.paused_until INTO v_was FROM pipeline.key_turns k WHERE k.turns_id = pipeline.turns_of(p_workflow) AND k.key = p_key FOR UPDATE;
    UPDATE pipeline.key_turns k SET paused_until = NULL WHERE k.turns_id = pipeline.turns_of(p_workflow) AND k.key = p_key;
    PERFORM pg_notify('pipeline_relay', '');
    RETURN coalesce(v_was > now(), false);
END $$;

-- The keys of a workflow that have unfinished jobs, from p_from on in their order: how many jobs are under way, and how many wait
-- for a turn (1,000 means at least so many).
CREATE OR REPLACE FUNCTION pipeline.list_turns(p_workflow text, p_from text DEFAULT '', p_most integer DEFAULT 50)
RETURNS TABLE (key text, under_way integer, waiting integer, weight integer, paused_until timestamptz) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE workflow AS MATERIALIZED (
        SELECT pipeline.turns_of(p_workflow) AS turns
    ), keys AS (
        SELECT (SELECT o.key FROM pipeline.outbox o WHERE o.turns_id = w.turns AND o.key >= p_from ORDER BY o.key LIMIT 1) AS key, 1 AS n
        FROM workflow w
        UNION ALL
        SELECT (SELECT o.key FROM pipeline.outbox o WHERE o.turns_id = w.turns AND o.key > k.key ORDER BY o.key LIMIT 1), k.n + 1
        FROM keys k CROSS JOIN workflow w WHERE k.key IS NOT NULL AND k.n < p_most
    )
    SELECT k.key,
           (SELECT count(*)::integer FROM pipeline.outbox o WHERE o.turns_id = w.turns AND o.key = k.key AND o.has_turn),
           (SELECT count(*)::integer FROM (SELECT 1 FROM pipeline.outbox o WHERE o.turns_id = w.turns AND o.key = k.key
                                           AND o.has_turn IS FALSE LIMIT 1000) s),
           coalesce(t.weight, 1), CASE WHEN t.paused_until > now() THEN t.paused_until END
    FROM keys k CROSS JOIN workflow w LEFT JOIN pipeline.key_turns t ON t.turns_id = w.turns AND t.key = k.key
    WHERE k.key IS NOT NULL ORDER BY k.key
$$;
