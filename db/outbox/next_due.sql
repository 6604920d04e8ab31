-- Seconds until the next timed wait or pause ends, and whether jobs wait at a full queue (those that wait for a
-- processor of a pool are announced by whoever leaves one).
-- Null: nothing waits for a time.
CREATE OR REPLACE FUNCTION pipeline_next_due(OUT seconds double precision, OUT waiting boolean)
LANGUAGE sql STABLE AS $$
    SELECT extract(epoch FROM least((SELECT min(due_at) FROM outbox WHERE due_at IS NOT NULL), (
               SELECT min(paused_until) FROM phases ph WHERE paused_until > now() AND EXISTS (
                   SELECT 1 FROM outbox o WHERE o.phase_id = ph.id AND o.sent_at IS NULL AND o.due_at IS NULL)))
               - now())::double precision,
           EXISTS (SELECT 1 FROM phases ph WHERE ph.pool IS NULL AND (ph.paused_until IS NULL OR ph.paused_until <= now()) AND EXISTS (
               SELECT 1 FROM outbox o WHERE o.phase_id = ph.id AND o.sent_at IS NULL AND o.due_at IS NULL))
$$;
