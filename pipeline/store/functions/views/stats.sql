-- One row per phase: what waits, is queued, runs, failed. Everything is counted up to a bound, so that a report costs
-- the same whether ten or a million jobs wait.
CREATE OR REPLACE FUNCTION pipeline.stats(p_cap integer DEFAULT 10000)
RETURNS TABLE (queue text, workflow text, phase text, waiting jsonb, queued integer, running integer, retryable integer,
               failed integer, pool integer, busy integer, error integer, paused_until timestamptz,
               oldest_seconds double precision)
LANGUAGE sql STABLE AS $$
    WITH timed AS MATERIALIZED (
        SELECT t.phase_id, t.reason, count(*) AS n FROM (
            -- Null: its time is over, and it waits at the gate.
            SELECT o.phase_id, CASE WHEN o.due_at <= now() AND o.has_turn IS NOT FALSE THEN NULL
                WHEN o.waits_for IS NOT NULL AND o.due_at > now() THEN split_part(o.waits_for, ':', 1)
                WHEN o.has_turn IS FALSE AND (o.due_at <= now() OR o.due_at = 'infinity') THEN 'key'
                WHEN o.due_at < 'infinity' THEN coalesce(o.reason, 'scheduled') ELSE pipeline.limit_reason(o.rate_limit) END AS reason
            FROM pipeline.outbox o WHERE o.due_at IS NOT NULL ORDER BY o.due_at LIMIT p_cap) t
        GROUP BY t.phase_id, t.reason
    ), sent AS MATERIALIZED (
        SELECT o.sent_at, j.workflow, j.phase, j.status, j.heartbeat_at
        FROM unnest(ARRAY(SELECT r FROM pipeline.outbox r WHERE r.sent_at IS NOT NULL)) o JOIN pipeline.jobs j ON j.id = o.job_id
    ), out AS MATERIALIZED (
        SELECT s.workflow, s.phase, (count(*) FILTER (WHERE s.status <> 'running'))::integer AS queued,
               min(s.sent_at) FILTER (WHERE s.status <> 'running') AS oldest,
               (count(*) FILTER (WHERE s.status = 'running'))::integer AS running, (count(*) FILTER (WHERE s.status = 'running' AND ph.pool IS NOT NULL))::integer AS busy,
               (count(*) FILTER (WHERE s.status = 'running' AND ph.pool IS NOT NULL AND s.heartbeat_at < now() - ph.stale_after))::integer AS error
        FROM sent s JOIN pipeline.phases ph ON ph.workflow = s.workflow AND ph.phase = s.phase GROUP BY s.workflow, s.phase
    )
    SELECT ph.queue, ph.workflow, ph.phase,
           coalesce((SELECT jsonb_object_agg(w.reason, w.n) FROM (
               SELECT u.reason, sum(u.n)::integer AS n FROM (
                   SELECT coalesce(t.reason, pipeline.gate_reason(ph)) AS reason, t.n FROM timed t WHERE t.phase_id = ph.id
                   UNION ALL
                   SELECT pipeline.gate_reason(ph), g.n FROM (SELECT count(*) AS n FROM (SELECT 1 FROM pipeline.outbox o
                       WHERE o.phase_id = ph.id AND o.sent_at IS NULL AND o.due_at IS NULL LIMIT p_cap) c) g
                   WHERE g.n > 0) u
               GROUP BY u.reason) w), '{}'),
           coalesce(out.queued, 0),
           coalesce(out.running, 0),
           (SELECT count(*)::integer FROM (SELECT 1 FROM pipeline.jobs j WHERE j.workflow = ph.workflow
                AND j.rest = ph.phase || ':retryable' LIMIT p_cap) b),
           (SELECT count(*)::integer FROM (SELECT 1 FROM pipeline.jobs j WHERE j.workflow = ph.workflow
                AND j.rest = ph.phase || ':failed' LIMIT p_cap) f),
           ph.pool, coalesce(out.busy, 0), coalesce(out.error, 0),
           CASE WHEN ph.paused_until > now() THEN ph.paused_until END,
           extract(epoch FROM now() - least(
               (SELECT min(j.ready_at) FROM generate_series(0, 9) AS p(priority) CROSS JOIN LATERAL (
                    SELECT o.job_id FROM pipeline.outbox o WHERE o.phase_id = ph.id AND o.sent_at IS NULL AND o.due_at IS NULL
                    AND o.priority = p.priority ORDER BY o.priority DESC, o.seq LIMIT 1) first
                JOIN pipeline.jobs j ON j.id = first.job_id),
               out.oldest))::double precision
    FROM pipeline.phases ph LEFT JOIN out ON out.workflow = ph.workflow AND out.phase = ph.phase
    ORDER BY ph.workflow, ph.position
$$;

-- Attempts that ended in the last seconds, newest first and no more than p_most of them; seconds is the time they
-- cover, which is shorter when there were more. A phase's name mostly says which workflow it is of; only where two have
-- one of that name, the job is looked at.
CREATE OR REPLACE FUNCTION pipeline.attempts_recent(p_seconds double precision, p_most integer)
RETURNS TABLE (queue text, outcome text, n integer, seconds double precision) LANGUAGE sql STABLE AS $$
    WITH newest AS MATERIALIZED (
        SELECT a.job_id, a.phase, a.outcome, a.finished_at FROM pipeline.attempts a
        WHERE a.finished_at > now() - make_interval(secs => p_seconds) ORDER BY a.finished_at DESC LIMIT p_most
    ), span AS (
        SELECT CASE WHEN count(*) < p_most THEN p_seconds
                    ELSE greatest(extract(epoch FROM now() - min(finished_at)), 0.001) END::double precision AS seconds FROM newest
    ), sole AS MATERIALIZED (
        SELECT ph.phase, min(ph.workflow) AS workflow FROM pipeline.phases ph GROUP BY ph.phase HAVING count(*) = 1
    ), placed AS MATERIALIZED (
        SELECT CASE WHEN o.workflow IS NOT NULL THEN o.workflow
                    ELSE (SELECT j.workflow FROM pipeline.jobs j WHERE j.id = n.job_id) END AS workflow, n.phase, n.outcome
        FROM newest n LEFT JOIN sole o ON o.phase = n.phase
    )
    SELECT p.workflow || '.' || p.phase, p.outcome, count(*)::integer, s.seconds
    FROM placed p CROSS JOIN span s WHERE p.workflow IS NOT NULL GROUP BY 1, 2, s.seconds
$$;

-- Seconds by which the relay is late: with what is due, or with what waits although its queue has room.
CREATE OR REPLACE FUNCTION pipeline.relay_lag() RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT greatest(0, extract(epoch FROM now() - (SELECT min(due_at) FROM pipeline.outbox WHERE due_at < 'infinity')),
        (SELECT max(s.oldest_seconds) FROM (
            SELECT (SELECT extract(epoch FROM now() - j.ready_at) FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
                    WHERE o.phase_id = ph.id AND o.sent_at IS NULL AND o.due_at IS NULL
                    ORDER BY o.priority DESC, o.seq LIMIT 1) AS oldest_seconds
            FROM pipeline.phases_waited_for() ph WHERE pipeline.capacity(ph) > 0) s))::double precision
$$;
