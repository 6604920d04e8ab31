-- How these jobs are, for whoever submitted them; none of a job that does not exist. waits_for says why a job does not run;
-- its time is due_at. result is what the job's last phase returned, once it has succeeded.
CREATE OR REPLACE FUNCTION pipeline.job_status(p_jobs uuid[])
RETURNS TABLE (id uuid, workflow text, phase text, state text, attempts integer, crashes integer, progress_done integer,
               progress_total integer, waits_for text, due_at timestamptz, error text, result jsonb)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT j.id, j.workflow, j.phase, j.status, j.attempts, j.crashes, j.progress_done, j.progress_total,
           CASE WHEN j.status IN ('pending', 'retryable') THEN
               -- A time that is over is over, whether or not the relay has come by: it cannot while RabbitMQ is away.
               CASE WHEN o.due_at <= now() AND o.has_turn IS FALSE THEN 'key'
                    WHEN o.due_at <= now() THEN pipeline.gate_reason(ph)
                    WHEN o.waits_for IS NOT NULL THEN split_part(o.waits_for, ':', 1)
                    WHEN o.due_at = 'infinity' AND o.has_turn IS FALSE THEN 'key'
                    WHEN o.due_at = 'infinity' THEN pipeline.limit_reason(o.rate_limit)
                    WHEN o.due_at IS NOT NULL THEN coalesce(j.wait_reason, o.reason, 'scheduled')
                    WHEN o.sent_at IS NOT NULL THEN 'queued'
                    WHEN ph.id IS NULL THEN 'undeclared'
                    ELSE coalesce((SELECT l.pause_reason FROM pipeline.rate_limits l WHERE l.name = o.rate_limit AND l.paused_until > now()),
                                  pipeline.gate_reason(ph)) END END,
           CASE WHEN o.due_at > now() AND o.due_at < 'infinity' THEN o.due_at END, j.error_message,
           CASE WHEN j.status = 'succeeded' THEN j.result -> j.phase END
    FROM pipeline.jobs j LEFT JOIN pipeline.outbox o ON o.job_id = j.id
         LEFT JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
    WHERE j.id = ANY (p_jobs)
$$;
