-- The phases at whose gate somebody waits: a step through the index for each, however many phases there are and however
-- many jobs wait.
CREATE OR REPLACE FUNCTION pipeline.phases_waited_for() RETURNS SETOF pipeline.phases LANGUAGE plpgsql STABLE ROWS 4 AS $$
DECLARE
    v_id integer := 0;
BEGIN
    LOOP
        SELECT o.phase_id INTO v_id FROM pipeline.outbox o
        WHERE o.phase_id > v_id AND o.sent_at IS NULL AND o.due_at IS NULL ORDER BY o.phase_id LIMIT 1;
        EXIT WHEN NOT FOUND;
        RETURN QUERY SELECT * FROM pipeline.phases WHERE id = v_id;
    END LOOP;
END $$;
