-- Every change of a job's status passes here, whoever makes it: only the steps of the state machine are let through
-- (pipeline/declare/states.py has the same table). And this is the one place where a lease ends: whatever takes a job out of
-- 'running' clears all of it. A job that its worker continues with keeps it, under a new fence.
CREATE OR REPLACE FUNCTION pipeline.step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status || ' ' || NEW.status <> ALL (ARRAY[
        'pending running', 'pending cancelled', 'pending failed', 'retryable running', 'retryable cancelled', 'retryable failed',
        'running pending', 'running retryable', 'running succeeded', 'running failed', 'running cancelled',
        'failed pending', 'failed cancelled', 'cancelled pending'])
    THEN
        RAISE EXCEPTION USING ERRCODE = 'PL007', MESSAGE = format('job %s cannot go from %s to %s', OLD.id, OLD.status, NEW.status),
            HINT = 'use pipeline.cancel, pipeline.replay or pipeline.reset instead of an UPDATE';
    END IF;
    IF OLD.status = 'running' THEN
        NEW.locked_by := NULL;
        NEW.locked_at := NULL;
        NEW.heartbeat_at := NULL;
        NEW.sent_at := NULL;
        NEW.delivery := NULL;
        NEW.isolated := NULL;
        NEW.message_phase_id := NULL;
    END IF;
    RETURN NEW;
END $$;
DO $$
BEGIN
    -- Once: making it anew would wait for every transaction that has written jobs.
    IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'pipeline.jobs'::regclass AND tgname = 'jobs_step') THEN
        CREATE TRIGGER jobs_step BEFORE UPDATE OF status ON pipeline.jobs FOR EACH ROW
            WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION pipeline.step();
    END IF;
END $$;

-- The shared ends of a running attempt. Private to the transitions: callers hold the row's lock and have
-- checked the fence.
CREATE OR REPLACE FUNCTION pipeline.end_waiting(p_job pipeline.jobs, p_status text, p_attempts integer, p_crashes integer,
    p_due timestamptz, p_reason text, p_error text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pipeline.jobs SET status = p_status, attempts = p_attempts, crashes = p_crashes, send = send + 1, ready_at = now(),
        updated_at = now(), next_retry_at = p_due, wait_reason = p_reason, error_message = coalesce(left(p_error, 20000), error_message)
    WHERE id = p_job.id;
    PERFORM pipeline.enqueue(p_job.id, p_job.workflow, p_job.phase, p_job.priority, p_due, p_reason);
END $$;

CREATE OR REPLACE FUNCTION pipeline.end_failed(p_job pipeline.jobs, p_crashes integer, p_attempts integer, p_error text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pipeline.jobs SET status = 'failed', attempts = p_attempts, crashes = p_crashes, completed_at = now(),
        updated_at = now(), error_message = left(p_error, 20000), cause = pipeline.cause(p_error),
        next_retry_at = NULL, wait_reason = NULL
    WHERE id = p_job.id;
    PERFORM pipeline.leave_places(ARRAY[p_job.id]);
    PERFORM pipeline.leave_outbox(ARRAY[p_job.id]);
    PERFORM pipeline.return_permits(ARRAY[p_job.id]);
    PERFORM pipeline.count_children(ARRAY[p_job.id]);
    PERFORM pipeline.submit_hooks(ARRAY[p_job.id], 'failed');
    PERFORM pipeline.wake();
END $$;

-- The name of a failure's group: the kind of error, the status of an HTTP answer, the team's line where it was raised, and
-- what it said without everything that differs from job to job: quotations, addresses, paths, and words with a digit.
-- "HTTPStatusError 404 at shop.py:12: # answered # Not Found". An error of the engine has no kind, and mostly no place.
CREATE OR REPLACE FUNCTION pipeline.cause(p_error text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(nullif(concat_ws(': ', nullif(concat_ws(' at ', nullif(concat_ws(' ', e.kind, e.status), ''), e.place), ''),
                                     nullif(left(btrim(n.said), 100), '')), ''), 'unknown')
    FROM (SELECT split_part(left(p_error, 4000), E'\n', 1) AS line) l CROSS JOIN LATERAL (
        SELECT substring(l.line FROM '^([A-Za-z_][A-Za-z0-9_.]{0,79})(?: [1-5][0-9]{2})?: ') AS kind,
               substring(right(l.line, 100) FROM '\(([^():\s]{1,80}:[0-9]{1,6})\)$') AS place,
               coalesce(substring(l.line FROM '^[A-Za-z_][A-Za-z0-9_.]{0,79} ([1-5][0-9]{2}): '),
                        substring(left(l.line, 500) FROM
                            '(?i)\m(?:http|status|code|answered|returned|responded|got)\M[^0-9]{0,12}\m([1-5][0-9]{2})\M')) AS status
    ) e CROSS JOIN LATERAL (
        SELECT regexp_replace(regexp_replace(regexp_replace(regexp_replace(left(
            CASE WHEN e.kind IS NULL THEN l.line ELSE regexp_replace(l.line, '^\S+(?: [1-5][0-9]{2})?: ', '') END, 400),
            '\s*\([^():\s]{1,80}:[0-9]{1,6}\)$', ''),
            '(?<!\w)(''[^'']*''|"[^"]*")(?!\w)', '…', 'g'),
            '\w+://\S+|(?<!\S)/\S+|\S*[0-9]\S*', '#', 'g'),
            '#(?:[\s,]+#)+', '#', 'g') AS said
    ) n
$$;
