-- What ended since the last time, added to the counters: how long attempts waited for a thread, how long jobs took from
-- their submission to their end, how many were submitted and ended. By the index of ends and the order of ids: what is
-- bounded is the time, not the tables. Whoever comes second leaves it to the first. What commits more than ten seconds
-- after it was written is not counted.
CREATE OR REPLACE FUNCTION pipeline.count_ended() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := floor(extract(epoch FROM now() - interval '10 seconds') * 1000);
    v_last bigint;
    v_from timestamptz;
    v_until timestamptz := to_timestamp(v_now / 1000.0);
    v_queue double precision[] := ARRAY[0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
    v_job double precision[] := ARRAY[0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400];
BEGIN
    INSERT INTO pipeline.counter_totals (name, n) VALUES ('counted.until', v_now) ON CONFLICT DO NOTHING;
    SELECT n INTO v_last FROM pipeline.counter_totals WHERE name = 'counted.until' FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND OR v_last >= v_now THEN RETURN false; END IF;
    -- After an outage of hours the latest ten minutes have to do.
    v_from := greatest(to_timestamp(v_last / 1000.0), v_until - interval '10 minutes');
    INSERT INTO pipeline.counter_totals AS t (name, n)
    WITH ended AS MATERIALIZED (
        SELECT j.workflow, j.workflow || '.' || a.phase AS queue,
               CASE WHEN a.started_at IS NOT NULL
                    THEN greatest(extract(epoch FROM a.started_at - greatest(a.ready_at, a.due_at)), 0)::double precision END AS queued,
               CASE WHEN j.completed_at = a.finished_at
                    THEN extract(epoch FROM j.completed_at - j.created_at)::double precision END AS took, j.status
        FROM pipeline.attempts a JOIN pipeline.jobs j ON j.id = a.job_id WHERE a.finished_at >= v_from AND a.finished_at < v_until
    ), counted AS (
        SELECT 'queue_time.' || e.queue || '.' || coalesce((v_queue)[width_bucket(e.queued, v_queue) + 1]::text, 'inf') AS name, count(*) AS n
        FROM ended e WHERE e.queued IS NOT NULL GROUP BY 1
        UNION ALL
        SELECT 'queue_time.' || e.queue || '.ms', sum(e.queued * 1000) FROM ended e WHERE e.queued IS NOT NULL GROUP BY 1
        UNION ALL
        SELECT 'job_time.' || e.workflow || '.' || coalesce((v_job)[width_bucket(e.took, v_job) + 1]::text, 'inf'), count(*)
        FROM ended e WHERE e.took IS NOT NULL GROUP BY 1
        UNION ALL
        SELECT 'job_time.' || e.workflow || '.ms', sum(e.took * 1000) FROM ended e WHERE e.took IS NOT NULL GROUP BY 1
        UNION ALL
        SELECT 'finished.' || e.workflow || '.' || e.status, count(*) FROM ended e WHERE e.took IS NOT NULL GROUP BY 1
        UNION ALL
        SELECT 'submitted.' || j.workflow, count(*) FROM pipeline.jobs j
        WHERE j.id >= pipeline.id_at(v_from) AND j.id < pipeline.id_at(v_until) GROUP BY 1
    )
    SELECT c.name, c.n FROM counted c ON CONFLICT (name) DO UPDATE SET n = t.n + excluded.n;
    UPDATE pipeline.counter_totals SET n = v_now WHERE name = 'counted.until';
    RETURN true;
END $$;
