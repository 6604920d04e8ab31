-- Reconciling without RabbitMQ's management API: only ready messages can be counted, so that what the workers hold
-- must be known from themselves. See pipeline/maintenance/passive.py for the order of the looks.

-- Jobs whose message was taken by RabbitMQ before p_before and that nobody has claimed since: a send since then
-- would have moved sent_at, and a claim the status.
CREATE OR REPLACE FUNCTION pipeline.unclaimed(p_before timestamptz) RETURNS SETOF pipeline.outbox LANGUAGE sql STABLE AS $$
    SELECT o.* FROM unnest(ARRAY(SELECT r FROM pipeline.outbox r WHERE r.sent_at IS NOT NULL AND r.sent_at <= p_before)) o
         JOIN pipeline.jobs j ON j.id = o.job_id
    WHERE j.status IN ('pending', 'retryable') AND pipeline.is_confirmed(o)
$$;

-- Of those, the ones that were overtaken: a queue delivers in order, so that a message is in somebody's hands or lost
-- if a job of the same or a lower priority whose message was sent p_seconds later has begun. A job that its worker
-- carried here had no message in this queue: it began in the transaction that says it was sent.
CREATE OR REPLACE FUNCTION pipeline.overtaken(p_before timestamptz, p_seconds double precision)
RETURNS TABLE (queue text, job_id uuid, send bigint) LANGUAGE sql STABLE AS $$
    WITH waiting AS MATERIALIZED (
        SELECT * FROM pipeline.unclaimed(least(p_before, now() - make_interval(secs => p_seconds)))
    ), begun AS MATERIALIZED (
        SELECT j.workflow, j.phase, j.priority, max(j.sent_at) AS sent_at FROM pipeline.running_jobs j
        WHERE j.message_phase_id IS NULL AND EXISTS (SELECT 1 FROM waiting) GROUP BY 1, 2, 3
        UNION ALL
        SELECT j.workflow, a.phase, j.priority, max(a.sent_at)
        FROM (SELECT * FROM pipeline.attempts WHERE finished_at > now() - interval '2 minutes' AND EXISTS (SELECT 1 FROM waiting)
              ORDER BY finished_at DESC LIMIT 10000) a JOIN pipeline.jobs j ON j.id = a.job_id
        WHERE a.started_at > a.sent_at GROUP BY 1, 2, 3
    )
    SELECT ph.queue, j.id, j.send
    FROM waiting w JOIN pipeline.phases ph ON ph.id = w.phase_id JOIN pipeline.jobs j ON j.id = w.job_id
    WHERE EXISTS (SELECT 1 FROM begun b WHERE b.workflow = ph.workflow AND b.phase = ph.phase
                  AND b.priority <= w.priority AND b.sent_at > w.sent_at + make_interval(secs => p_seconds))
$$;

-- What the workers held unstarted of each queue when RabbitMQ was asked, at most: each says with every heartbeat how
-- many it held at any one time lately. One that has not said anything since may hold as many as it may fetch; so may
-- one that died a moment ago, until RabbitMQ notices, and one of an older version, which does not say. The name '*'
-- stands for all queues that a worker does not name.
-- unheard: living workers whose next heartbeat is worth waiting for.
CREATE OR REPLACE FUNCTION pipeline.unstarted_messages(p_asked timestamptz, p_noticed interval)
RETURNS TABLE (queue text, held integer, unheard integer) LANGUAGE sql VOLATILE AS $$
    SELECT q.queue,
           sum(coalesce(CASE WHEN w.heard THEN coalesce(w.unstarted->>q.queue, w.unstarted->>'*')::integer END, 2 * w.threads))::integer,
           (count(*) FILTER (WHERE NOT w.heard AND w.stopped_at IS NULL AND w.alive))::integer
    FROM (SELECT v.*, v.heartbeat_at > p_asked + interval '1 second' AS heard, pipeline.alive(v.id) AS alive
          FROM pipeline.workers v WHERE v.started_at <= p_asked) w
         CROSS JOIN LATERAL unnest(w.queues) AS q(queue)
    WHERE w.heartbeat_at > p_asked - p_noticed OR (w.stopped_at IS NULL AND w.alive)
    GROUP BY q.queue
$$;

-- Send a queue's unclaimed jobs again if there are more of them than messages were found. Rows that somebody has
-- locked just now count for neither: their message may be in the hands of a worker that waits for the lock.
CREATE OR REPLACE FUNCTION pipeline.resend(p_queue text, p_before timestamptz, p_found integer)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_jobs uuid[];
    v_sends bigint[];
BEGIN
    SELECT array_agg(h.id), array_agg(h.send) INTO v_jobs, v_sends FROM (
        SELECT j.id, j.send FROM pipeline.jobs j
        WHERE j.id = ANY (ARRAY(SELECT u.job_id FROM pipeline.unclaimed(p_before) u JOIN pipeline.phases ph ON ph.id = u.phase_id
                                WHERE ph.queue = p_queue))
          AND j.status IN ('pending', 'retryable')
        ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED) h;
    IF coalesce(cardinality(v_jobs), 0) <= p_found THEN
        RETURN 0;
    END IF;
    RETURN pipeline.unsend(v_jobs, v_sends, 'lost_in_broker');
END $$;
