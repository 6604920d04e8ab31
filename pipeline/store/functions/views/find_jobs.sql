-- As pipeline.list_jobs, with more to find them by: since and until when they were submitted, the beginning of their id,
-- a text in their error. 'unfinished' is every state that is not final. What no index answers is looked for among
-- p_walk jobs; floor says where that ended.
CREATE OR REPLACE FUNCTION pipeline.find_jobs(
    p_workflow text, p_phase text, p_status text, p_tag text, p_since timestamptz, p_until timestamptz, p_prefix text,
    p_error text, p_before uuid, p_most integer, p_walk integer DEFAULT 20000, OUT ids uuid[], OUT floor uuid)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_prefix text := lower(replace(p_prefix, '-', ''));
    v_low uuid := greatest(pipeline.id_at(p_since), rpad(v_prefix, 32, '0')::uuid, '00000000-0000-0000-0000-000000000000');
    -- What may match is below this one.
    v_high uuid := least(p_before, pipeline.id_at(p_until), rpad(v_prefix, 32, 'f')::uuid);
    v_unfinished boolean := p_status IS NOT DISTINCT FROM 'unfinished';
    v_error text := '%' || replace(replace(replace(p_error, '\', '\\'), '%', '\%'), '_', '\_') || '%';
    v_chunk integer := CASE WHEN p_error IS NULL AND NOT v_unfinished THEN p_most ELSE 1000 END;
    v_walked integer := 0;
    v_some uuid[];
    v_floor uuid;
BEGIN
    ids := '{}';
    IF length(v_prefix) = 32 THEN
        ids := ARRAY(SELECT j.id FROM pipeline.jobs j WHERE j.id = v_low AND j.id < p_before);
        RETURN;
    END IF;
    LOOP
        IF v_unfinished THEN
            v_floor := NULL;
            v_some := ARRAY(SELECT o.job_id FROM pipeline.outbox o WHERE o.job_id < v_high ORDER BY o.job_id DESC LIMIT v_chunk);
        ELSE
            SELECT l.ids, l.floor INTO v_some, v_floor
            FROM pipeline.list_jobs(p_workflow, p_phase, p_status, v_high, v_chunk, p_walk, p_tag) l;
        END IF;
        ids := ids || ARRAY(
            SELECT j.id FROM pipeline.jobs j
            WHERE j.id = ANY (v_some) AND j.id >= v_low AND (p_error IS NULL OR j.error_message ILIKE v_error)
              AND (NOT v_unfinished OR ((p_workflow IS NULL OR j.workflow = p_workflow) AND (p_phase IS NULL OR j.phase = p_phase)
                                        AND (p_tag IS NULL OR p_tag = ANY (j.tags))))
            ORDER BY j.id DESC LIMIT p_most - cardinality(ids));
        v_walked := v_walked + greatest(cardinality(v_some), 1);
        EXIT WHEN cardinality(ids) >= p_most;
        IF cardinality(v_some) = v_chunk THEN
            v_high := v_some[v_chunk];
        ELSIF v_floor IS NOT NULL THEN
            v_high := v_floor;
        ELSE
            EXIT;
        END IF;
        EXIT WHEN v_high <= v_low;
        IF v_walked >= p_walk THEN
            floor := v_high;
            EXIT;
        END IF;
    END LOOP;
END $$;
