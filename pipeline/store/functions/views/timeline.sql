-- Where a job's time went. 'waiting' is at the gate: for a place in the pool or the queue, or for the relay. Parts follow one another without a gap and add up to the job's age. 'failed' is the
-- time a job lay failed until it was replayed. Where the history of earlier waits was not kept (see pipeline.record_attempt), they
-- are one part, 'snoozed'.
CREATE OR REPLACE FUNCTION pipeline.timeline(p_job uuid)
RETURNS TABLE (phase text, attempt integer, part text, started_at timestamptz, ended_at timestamptz,
               seconds double precision, outcome text, worker text, error text)
LANGUAGE sql STABLE AS $$
    WITH spans AS (
        SELECT a.phase, a.fence, a.attempt, a.ready_at, a.due_at, a.sent_at, a.started_at, a.finished_at,
               a.outcome, pipeline.worker_name(a.worker, a.worker_no) AS worker, a.wait_reason, a.error
        FROM pipeline.attempts a WHERE a.job_id = p_job
        UNION ALL
        SELECT j.phase, j.fence + CASE WHEN j.status = 'running' THEN 0 ELSE 1 END, j.attempts + 1, j.ready_at,
               coalesce(j.next_retry_at, CASE WHEN o.waits_for IS NOT NULL THEN now() END), coalesce(j.sent_at, o.sent_at), j.locked_at, now(), NULL, j.locked_by,
               coalesce(j.wait_reason, o.reason), NULL
        FROM pipeline.jobs j LEFT JOIN pipeline.outbox o ON o.job_id = j.id WHERE j.id = p_job AND j.completed_at IS NULL
    ), moments AS (
        SELECT s.*, lag(s.finished_at) OVER (ORDER BY s.fence) AS before,
               pipeline.claims(s.fence) > 1 + coalesce(pipeline.claims(lag(s.fence) OVER (ORDER BY s.fence)), 0) AS unkept, least(greatest(coalesce(s.due_at, s.ready_at), s.ready_at), s.finished_at) AS due
        FROM spans s
    ), marks AS (
        SELECT m.*, least(greatest(coalesce(m.sent_at, m.started_at, m.finished_at), m.due), m.finished_at) AS sent
        FROM moments m
    ), begun AS (
        SELECT k.*, least(greatest(coalesce(k.started_at, k.finished_at), k.sent), k.finished_at) AS begin FROM marks k
    ), parts AS (
        SELECT b.phase, b.attempt, b.fence, p.n, p.part, p.t0, p.t1, b.outcome, b.worker, b.error
        FROM begun b CROSS JOIN LATERAL (VALUES
            (0, CASE WHEN b.unkept THEN 'snoozed' ELSE 'failed' END,
             coalesce(b.before, CASE WHEN b.unkept THEN (SELECT j.created_at FROM pipeline.jobs j WHERE j.id = p_job) END, b.ready_at),
             b.ready_at),
            (1, CASE b.wait_reason WHEN 'backoff' THEN 'backing off' WHEN 'throttled' THEN 'throttled' WHEN 'after' THEN 'not due'
                    WHEN 'children' THEN 'waiting for children' WHEN 'event' THEN 'waiting for an event' WHEN 'signalled' THEN 'waiting for an event'
                    ELSE 'snoozed' END, b.ready_at, b.due),
            (2, 'waiting', b.due, b.sent),
            (3, 'queued', b.sent, b.begin),
            (4, 'running', b.begin, b.finished_at)) AS p(n, part, t0, t1)
        WHERE p.t1 > p.t0 OR (p.n = 4 AND b.started_at IS NOT NULL)
    )
    SELECT phase, attempt, part, t0, t1, extract(epoch FROM t1 - t0)::double precision,
           CASE WHEN n = 4 THEN outcome END, CASE WHEN n = 4 THEN worker END, CASE WHEN n = 4 THEN error END
    FROM parts ORDER BY t0, fence, n
$$;
