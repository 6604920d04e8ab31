-- What RabbitMQ should have of each phase's queue: messages of jobs that wait there, marked as sent p_seconds ago or
-- earlier, and unacknowledged ones of running jobs. A job that went on to a later phase (see pipeline.complete) counts
-- where its message is. newest is the last that waits.
CREATE OR REPLACE FUNCTION pipeline.expected_messages(p_seconds double precision)
RETURNS TABLE (queue text, queued integer, running integer, newest timestamptz) LANGUAGE sql STABLE AS $$
    SELECT ph.queue,
           (count(*) FILTER (WHERE j.status <> 'running' AND o.sent_at <= now() - make_interval(secs => p_seconds)))::integer,
           (count(*) FILTER (WHERE j.status = 'running'))::integer,
           max(o.sent_at) FILTER (WHERE j.status <> 'running')
    -- As an array, which the planner takes for a short one: each job is looked up, however many others there are.
    FROM unnest(ARRAY(SELECT r FROM pipeline.outbox r WHERE r.sent_at IS NOT NULL)) o
         JOIN pipeline.phases ph ON ph.id = o.phase_id JOIN pipeline.jobs j ON j.id = o.job_id
    WHERE j.status = 'running' OR pipeline.is_confirmed(o)
    GROUP BY ph.queue
$$;

-- Whether RabbitMQ has taken the message, as far as its sender has said: while RabbitMQ refuses to read (a memory or
-- disk alarm), what is marked as sent waits in the sender, and sending it again would only pile up copies. What a
-- dead sender left unconfirmed is pipeline.reclaim's.
CREATE OR REPLACE FUNCTION pipeline.is_confirmed(p_row pipeline.outbox) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT 1 FROM pipeline.workers w
                       WHERE w.no = p_row.sent_by AND w.stopped_at IS NULL AND p_row.sent_at >= w.confirmed_at)
$$;
