-- Circuit breakers: pybreaker judges each call in its worker (pipeline/journey/limits/breaker.py), here is what all workers share. A
-- breaker and the rate limit of its name belong together: while the breaker is open, the rate limit is paused, so that its jobs
-- are held by the gate. An application may hold a row: whoever meets that hears of it after a second, and nothing was changed.

-- How many jobs a breaker lets through the gate at once; null: as many as there are. One while it is half-open; after it has
-- closed, twice as many each second for ten seconds, so that the outside system is not run over as soon as it is back.
CREATE OR REPLACE FUNCTION pipeline.breaker_room(p_name text) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN b.open_until IS NOT NULL THEN 1
                WHEN b.closed_at > now() - interval '10 seconds' THEN power(2, extract(epoch FROM now() - b.closed_at))::integer END
    FROM pipeline.breakers b WHERE b.name = p_name
$$;

-- May this job call now? 'closed': yes. 'half-open': yes, as the one probe of all workers, for p_probe seconds at most; then
-- another job may. 'open': no, for so many seconds.
CREATE OR REPLACE FUNCTION pipeline.breaker_enter(p_name text, p_job uuid, p_probe double precision, OUT state text, OUT seconds double precision)
LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
    v_breaker pipeline.breakers;
BEGIN
    state := 'closed'; seconds := 0;
    SELECT * INTO v_breaker FROM pipeline.breakers WHERE name = p_name;
    IF v_breaker.open_until IS NULL THEN RETURN; END IF;
    IF v_breaker.open_until <= now() THEN
        UPDATE pipeline.breakers SET probe_by = p_job, probe_until = now() + make_interval(secs => p_probe), probes = probes + 1
        WHERE name = p_name AND open_until <= now() AND (probe_until IS NULL OR probe_until <= now() OR probe_by = p_job)
        RETURNING * INTO v_breaker;
        IF FOUND THEN
            state := 'half-open';
            PERFORM pipeline.pause_rate_limit(p_name, v_breaker.probe_until, 'breaker');
            PERFORM pipeline.breaker_refund(p_name);
            RETURN;
        END IF;
        SELECT * INTO v_breaker FROM pipeline.breakers WHERE name = p_name;
        IF v_breaker.open_until IS NULL THEN RETURN; END IF;
    END IF;
    state := 'open';
    seconds := greatest(extract(epoch FROM greatest(v_breaker.open_until, v_breaker.probe_until) - now()), 0);
END $$;

-- A call failed. The failures in a row, this one included; null when the breaker is open already: the failure costs nothing then.
-- One below the limit costs its job an execution, which is remembered in case others follow.
CREATE OR REPLACE FUNCTION pipeline.breaker_failed(p_name text, p_job uuid, p_fence bigint, p_most integer, p_error text) RETURNS integer
LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
    v_failures integer;
BEGIN
    INSERT INTO pipeline.breakers AS b (name, failures, last_failure_at, last_error) VALUES (p_name, 1, now(), left(p_error, 1000))
    ON CONFLICT (name) DO UPDATE SET failures = b.failures + (b.open_until IS NULL)::integer, last_failure_at = now(),
        last_error = excluded.last_error
    RETURNING CASE WHEN b.open_until IS NULL THEN b.failures END INTO v_failures;
    IF v_failures < p_most THEN
        INSERT INTO pipeline.breaker_failures (breaker, job_id, fence) VALUES (p_name, p_job, p_fence) ON CONFLICT DO NOTHING;
    END IF;
    RETURN v_failures;
END $$;

-- A call succeeded: the next failure is the first again. Says so at most once a second, so that a busy row stays cool.
CREATE OR REPLACE FUNCTION pipeline.breaker_succeeded(p_name text) RETURNS void LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
BEGIN
    UPDATE pipeline.breakers SET failures = 0, last_success_at = now()
    WHERE name = p_name AND open_until IS NULL
        AND (failures > 0 OR last_success_at IS NULL OR last_success_at < now() - interval '1 second');
    IF FOUND THEN
        DELETE FROM pipeline.breaker_failures WHERE breaker = p_name;
    END IF;
END $$;

-- Open it: by failures in a row if it is closed, by a failed probe if this job is the one that probes.
CREATE OR REPLACE FUNCTION pipeline.breaker_open(p_name text, p_job uuid, p_seconds double precision) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
    v_until timestamptz;
BEGIN
    UPDATE pipeline.breakers SET open_until = now() + make_interval(secs => p_seconds), probe_by = NULL, probe_until = NULL,
        times_opened = times_opened + 1
    WHERE name = p_name AND (probe_by = p_job OR open_until IS NULL) RETURNING open_until INTO v_until;
    IF NOT FOUND THEN RETURN; END IF;
    -- Held until the probe's time would have been over: this pause may be shorter.
    PERFORM pipeline.end_breaker_pause(p_name);
    PERFORM pipeline.pause_rate_limit(p_name, v_until, 'breaker');
    PERFORM pipeline.breaker_refund(p_name);
END $$;

-- Close it: the probe of this job succeeded, or (without a job) an operator says so. What it held goes out gradually.
CREATE OR REPLACE FUNCTION pipeline.breaker_close(p_name text, p_job uuid DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
    UPDATE pipeline.breakers SET failures = 0, open_until = NULL, probe_by = NULL, probe_until = NULL, closed_at = now(),
        last_success_at = CASE WHEN p_job IS NULL THEN last_success_at ELSE now() END
    WHERE name = p_name AND open_until IS NOT NULL AND (p_job IS NULL OR probe_by = p_job);
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pipeline.breaker_refund(p_name);
    PERFORM pipeline.end_breaker_pause(p_name);
    RETURN true;
END $$;

-- A probe that ended without a verdict (its worker shut down, the job was cancelled): the next job may probe.
CREATE OR REPLACE FUNCTION pipeline.breaker_leave(p_name text, p_job uuid) RETURNS void LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
BEGIN
    UPDATE pipeline.breakers SET probe_by = NULL, probe_until = NULL WHERE name = p_name AND probe_by = p_job;
    IF FOUND THEN
        PERFORM pipeline.end_breaker_pause(p_name);
    END IF;
END $$;

-- The breaker's own pause: what an outside system or an operator asked for stands.
CREATE OR REPLACE FUNCTION pipeline.end_breaker_pause(p_name text) RETURNS void LANGUAGE sql AS $$
    UPDATE pipeline.rate_limits SET paused_until = NULL, pause_reason = NULL WHERE name = p_name AND pause_reason = 'breaker';
    SELECT pg_notify('pipeline_relay', '');
$$;

-- Give back what the failures cost; of one that is still being written down, or held, at the next step.
CREATE OR REPLACE FUNCTION pipeline.breaker_refund(p_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_jobs uuid[];
BEGIN
    WITH recorded AS (
        DELETE FROM pipeline.breaker_failures f USING pipeline.attempts a WHERE f.breaker = p_name AND a.job_id = f.job_id
            AND a.fence = f.fence AND f.job_id = ANY (ARRAY(SELECT j.id FROM pipeline.jobs j WHERE j.id IN (
                SELECT s.job_id FROM pipeline.breaker_failures s WHERE s.breaker = p_name) FOR NO KEY UPDATE SKIP LOCKED))
        RETURNING f.job_id, a.outcome)
    SELECT array_agg(r.job_id) INTO v_jobs FROM recorded r WHERE r.outcome IN ('retried', 'exhausted');
    PERFORM pipeline.refund(v_jobs) WHERE v_jobs IS NOT NULL;
END $$;
