-- The history row of an attempt that ends now. Its moments come from the job's row, so that the timeline
-- has no gaps; the primary key (job, fence) makes a repeated write visible instead of double.
-- Of a job that waits again and again the last hundred attempts are kept, and all that were no waits.
CREATE OR REPLACE FUNCTION pipeline.record_attempt(p_job pipeline.jobs, p_outcome text, p_error text) RETURNS void LANGUAGE sql AS $$
    DELETE FROM pipeline.attempts WHERE p_outcome = 'snoozed' AND job_id = p_job.id AND fence <= p_job.fence - 100 AND outcome = 'snoozed';
    INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, due_at, sent_at, started_at, finished_at,
                          phase, outcome, worker, wait_reason, error)
    VALUES (p_job.id, p_job.fence, p_job.attempts + 1, p_job.ready_at, p_job.next_retry_at, p_job.sent_at,
            p_job.locked_at, now(), p_job.phase, p_outcome, p_job.locked_by, p_job.wait_reason, left(p_error, 20000));
$$;

-- How an attempt ended, if it did: the answer to a step that is repeated after an unknown COMMIT.
CREATE OR REPLACE FUNCTION pipeline.outcome(p_job uuid, p_fence bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT outcome FROM pipeline.attempts WHERE job_id = p_job AND fence = p_fence), 'lost')
$$;
