-- Once a minute, by whoever comes first: what each phase had to do, for the charts. A minute is written when it is
-- ten seconds over, because an attempt is visible only when its transaction has committed. True if a row was due.
CREATE OR REPLACE FUNCTION pipeline.roll_up() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_at timestamptz := date_trunc('minute', now() - interval '10 seconds');
BEGIN
    IF NOT pg_try_advisory_xact_lock('pipeline.rollups'::regclass::oid::integer, 0) OR EXISTS (SELECT 1 FROM pipeline.rollups WHERE at >= v_at) THEN
        RETURN false;
    END IF;
    INSERT INTO pipeline.rollups (at, queue, waiting, queued, running, dead, succeeded, retried, crashed, waited, failed, cancelled,
                                  ran, took)
    SELECT v_at, s.queue, s.waiting, s.queued, s.running, s.failed, coalesce(e.succeeded, 0), coalesce(e.retried, 0),
           coalesce(e.crashed, 0), coalesce(e.waited, 0), coalesce(e.failed, 0), coalesce(e.cancelled, 0),
           coalesce(e.ran, '{}'), coalesce(e.took, '{}')
    FROM (SELECT t.*, (SELECT coalesce(sum(w.value::integer), 0) FROM jsonb_each_text(t.waiting) w) AS waiting
          FROM pipeline.stats() t) AS s(queue, workflow, phase, reasons, queued, running, retryable, failed, pool, busy,
                                        error, paused_until, oldest_seconds, waiting)
    LEFT JOIN pipeline.attempts_ended(v_at - interval '1 minute', v_at) e ON e.queue = s.queue
    WHERE s.waiting + s.queued + s.running + s.failed > 0 OR e.queue IS NOT NULL;
    -- The same by the quarter of an hour, for charts of days: the highest stand, the sum of what ended.
    INSERT INTO pipeline.rollup_quarters AS q (at, queue, waiting, queued, running, dead, succeeded, retried, crashed, waited, failed,
                                               cancelled, ran, took)
    SELECT date_bin('15 minutes', r.at, '2000-01-01'), r.queue, r.waiting, r.queued, r.running, r.dead, r.succeeded,
           r.retried, r.crashed, r.waited, r.failed, r.cancelled, r.ran, r.took
    FROM pipeline.rollups r WHERE r.at = v_at
    ON CONFLICT (at, queue) DO UPDATE SET
        waiting = greatest(q.waiting, excluded.waiting), queued = greatest(q.queued, excluded.queued),
        running = greatest(q.running, excluded.running), dead = greatest(q.dead, excluded.dead),
        succeeded = q.succeeded + excluded.succeeded, retried = q.retried + excluded.retried,
        crashed = q.crashed + excluded.crashed, waited = q.waited + excluded.waited,
        failed = q.failed + excluded.failed, cancelled = q.cancelled + excluded.cancelled,
        ran = pipeline.add_histograms(q.ran, excluded.ran), took = pipeline.add_histograms(q.took, excluded.took);
    DELETE FROM pipeline.rollups WHERE at < now() - interval '7 days';
    DELETE FROM pipeline.rollup_quarters WHERE at < now() - interval '7 days';
    RETURN true;
END $$;

-- All attempts that ended in that time, by the index of ends: what is bounded is the time, not the count.
CREATE OR REPLACE FUNCTION pipeline.attempts_ended(p_from timestamptz, p_until timestamptz)
RETURNS TABLE (queue text, succeeded integer, retried integer, crashed integer, waited integer, failed integer, cancelled integer,
               ran integer[], took integer[])
LANGUAGE sql STABLE AS $$
    SELECT j.workflow || '.' || a.phase,
           (count(*) FILTER (WHERE a.outcome = 'succeeded'))::integer,
           (count(*) FILTER (WHERE a.outcome = 'retried'))::integer,
           (count(*) FILTER (WHERE a.outcome IN ('crashed', 'stale')))::integer,
           (count(*) FILTER (WHERE a.outcome IN ('snoozed', 'released')))::integer,
           (count(*) FILTER (WHERE a.outcome IN ('failed', 'exhausted', 'poisoned', 'undeliverable', 'expired')))::integer,
           (count(*) FILTER (WHERE a.outcome = 'cancelled'))::integer,
           pipeline.histogram(array_agg(extract(epoch FROM a.finished_at - a.started_at)::double precision)
               FILTER (WHERE a.outcome = 'succeeded' AND a.started_at IS NOT NULL)),
           pipeline.histogram(array_agg(extract(epoch FROM j.completed_at - j.created_at)::double precision)
               FILTER (WHERE j.completed_at = a.finished_at))
    FROM pipeline.attempts a JOIN pipeline.jobs j ON j.id = a.job_id WHERE a.finished_at >= p_from AND a.finished_at < p_until
    GROUP BY 1
$$;
