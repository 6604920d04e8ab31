-- What RabbitMQ should have of each phase's queue: messages of jobs that wait there, marked as sent p_seconds ago or
-- earlier, and unacknowledged ones of running jobs. A job that went on to a later phase (see pipeline_complete) counts
-- where its message is. newest is the last that waits.
CREATE OR REPLACE FUNCTION pipeline_out(p_seconds double precision)
RETURNS TABLE (queue text, queued integer, running integer, newest timestamptz) LANGUAGE sql STABLE AS $$
    SELECT ph.queue,
           (count(*) FILTER (WHERE j.status <> 'running' AND o.sent_at <= now() - make_interval(secs => p_seconds)))::integer,
           (count(*) FILTER (WHERE j.status = 'running'))::integer,
           max(o.sent_at) FILTER (WHERE j.status <> 'running')
    -- As an array, which the planner takes for a short one: each job is looked up, however many others there are.
    FROM unnest(ARRAY(SELECT r FROM outbox r WHERE r.sent_at IS NOT NULL)) o
         JOIN phases ph ON ph.id = o.phase_id JOIN jobs j ON j.id = o.job_id
    GROUP BY ph.queue
$$;
