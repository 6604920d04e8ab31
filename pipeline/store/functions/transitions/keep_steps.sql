-- What steps of running attempts returned, kept while each attempt holds its job. Each row needs its fence. The same step
-- of the same attempt twice is harmless: the first one stays (the answer to its COMMIT was lost).
-- Verdicts: 'won', 'lost', or 'locked' when another transaction holds the row: nothing was kept, ask again.
CREATE OR REPLACE FUNCTION pipeline.keep_steps(p_ids uuid[], p_fences bigint[], p_names text[], p_values text[])
RETURNS TABLE (place integer, verdict text)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT j.id, j.fence, j.phase, j.waits, j.status FROM pipeline.jobs j
        WHERE j.id = ANY (p_ids) FOR NO KEY UPDATE SKIP LOCKED
    ), won AS MATERIALIZED (
        SELECT a.place, h.id, h.fence, h.phase, h.waits, a.name, a.value
        FROM unnest(p_ids, p_fences, p_names, p_values) WITH ORDINALITY AS a(id, fence, name, value, place)
             JOIN held h ON h.id = a.id AND h.fence = a.fence AND h.status = 'running'
    ), kept AS (
        INSERT INTO pipeline.steps AS s (job_id, fence, phase, name, value)
        SELECT DISTINCT ON (w.id, w.name) w.id, w.fence, w.phase, w.name, w.value FROM won w ORDER BY w.id, w.name, w.place
        -- Left by an earlier visit to the phase, which this attempt has not read: its chain was changed in between.
        ON CONFLICT ON CONSTRAINT steps_pkey DO UPDATE SET fence = EXCLUDED.fence, value = EXCLUDED.value, at = now()
        WHERE s.fence <> EXCLUDED.fence
    ), progress AS (
        -- A step is progress: it ends a row of waits.
        UPDATE pipeline.jobs j SET waits = 0 FROM won w WHERE j.id = w.id AND w.waits > 0
    )
    SELECT a.place::integer,
           CASE WHEN w.place IS NOT NULL THEN 'won'
                WHEN pipeline.not_held(a.id, a.fence) = 'locked' THEN 'locked' ELSE 'lost' END
    FROM unnest(p_ids, p_fences) WITH ORDINALITY AS a(id, fence, place) LEFT JOIN won w ON w.place = a.place;
END $$;
