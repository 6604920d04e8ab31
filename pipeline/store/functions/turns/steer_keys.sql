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
