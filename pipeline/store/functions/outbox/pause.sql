-- An outside system asked to be left alone for a while: the gate of the phase stays shut for every worker until
-- then. A later moment wins; an earlier one changes nothing. If another transaction has the row just now, the next job
-- that is asked to wait says so again.
CREATE OR REPLACE FUNCTION pipeline.pause(p_queue text, p_seconds double precision)
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE pipeline.phases ph SET paused_until = now() + make_interval(secs => p_seconds) FROM (
        SELECT f.id FROM pipeline.phases f WHERE f.queue = p_queue
            AND (f.paused_until IS NULL OR f.paused_until < now() + make_interval(secs => p_seconds))
        FOR NO KEY UPDATE SKIP LOCKED) free
    WHERE ph.id = free.id
$$;
