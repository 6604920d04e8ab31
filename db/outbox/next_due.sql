-- Seconds until the next timed wait or pause ends, and whether jobs wait at a full queue (those that wait for a
-- processor of a pool are announced by whoever leaves one).
-- Null: nothing waits for a time.
CREATE OR REPLACE FUNCTION pipeline_next_due(OUT seconds double precision, OUT waiting boolean)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT extract(epoch FROM least((SELECT min(due_at) FROM outbox WHERE due_at IS NOT NULL), p.ends) - now()), p.waiting
    INTO seconds, waiting
    FROM (SELECT min(ph.paused_until) FILTER (WHERE ph.paused_until > now()) AS ends,
                 coalesce(bool_or(ph.pool IS NULL AND (ph.paused_until > now()) IS NOT TRUE), false) AS waiting
          FROM pipeline_waited_for() ph) p;
END $$;
