-- Seconds until the next timed wait ends, and whether jobs wait at a shut gate. Null: nothing waits for a time.
CREATE OR REPLACE FUNCTION pipeline_next_due(OUT seconds double precision, OUT waiting boolean)
LANGUAGE sql STABLE AS $$
    SELECT (SELECT extract(epoch FROM min(due_at) - now())::double precision FROM outbox WHERE due_at IS NOT NULL),
           EXISTS (SELECT 1 FROM phases ph WHERE EXISTS (
               SELECT 1 FROM outbox o WHERE o.phase_id = ph.id AND o.sent_at IS NULL AND o.due_at IS NULL))
$$;
