-- What comes after a phase, where that is not the next phase at once (pipeline.complete, p_next): {"phase": …} goes to
-- another one, {"finish": true} ends the job; {"after": seconds} waits before it continues, {"event": name} for a signal
-- ("after": until then at the longest), {"batch": id} for the ends of children.

-- Where a job goes from this phase; null: it has ended.
CREATE OR REPLACE FUNCTION pipeline.next_phase(p_phase pipeline.phases, p_next jsonb, p_fence bigint) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
DECLARE
    c_most constant integer := 10000;
    v_id integer := p_phase.next_id;
BEGIN
    IF p_next ? 'finish' THEN RETURN NULL; END IF;
    IF p_next ? 'phase' THEN
        IF pipeline.claims(p_fence) >= c_most THEN
            RAISE EXCEPTION USING ERRCODE = 'PL010', MESSAGE = format('the job has had %s attempts and goes to phase %s once more', pipeline.claims(p_fence), p_next->>'phase'),
                HINT = 'a job that goes round in circles ends here: submit a new job instead';
        END IF;
        SELECT ph.id INTO v_id FROM pipeline.phases ph
        WHERE ph.workflow = p_phase.workflow AND ph.phase = p_next->>'phase' AND ph.position > 0;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'PL010', MESSAGE = format('workflow %s has no phase %L', p_phase.workflow, p_next->>'phase'),
                HINT = 'run "pipeline migrate" if the phase is new';
        END IF;
    ELSIF v_id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PL010', MESSAGE = format('phase %s is the last of its workflow: nothing can wait after it', p_phase.queue),
            HINT = 'add a phase that continues when the wait is over';
    END IF;
    RETURN v_id;
END $$;

-- Until when a job waits before it continues; null: not at all.
CREATE OR REPLACE FUNCTION pipeline.due_after(p_next jsonb) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_next ? 'finish' THEN NULL
                WHEN p_next ? 'after' THEN now() + make_interval(secs => (p_next->>'after')::double precision)
                WHEN p_next ? 'event' OR p_next ? 'batch' THEN 'infinity' END
$$;

CREATE OR REPLACE FUNCTION pipeline.next_wait(p_next jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_next ? 'event' THEN 'event:' || (p_next->>'event') WHEN p_next ? 'batch' THEN 'children:' || (p_next->>'batch') END
$$;

-- What the completing statement could not see, because it began before it had the rows: signals that were there before the
-- wait, children that need no waiting. And phases that are visited once more run their steps anew.
CREATE OR REPLACE FUNCTION pipeline.begin_waiting(p_jobs uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
BEGIN
    DELETE FROM pipeline.steps s USING pipeline.outbox o WHERE s.job_id = ANY (p_jobs) AND o.job_id = s.job_id AND o.due_at IS NULL;
    FOR v_row IN SELECT o.job_id, o.waits_for FROM pipeline.outbox o WHERE o.job_id = ANY (p_jobs) AND o.waits_for IS NOT NULL LOOP
        IF v_row.waits_for LIKE 'event:%' THEN
            PERFORM pipeline.deliver(v_row.job_id);
        ELSE
            PERFORM pipeline.seal_batch(substr(v_row.waits_for, 10)::uuid);
        END IF;
    END LOOP;
END $$;

-- The job need not wait any longer: its row is due, and what it waited for is the result of the phase that ended with the
-- wait. False if it does not wait for this (any more). The caller holds the job's row.
CREATE OR REPLACE FUNCTION pipeline.end_wait(p_job uuid, p_waits_for text, p_result jsonb, p_reason text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever has this row first ends the wait: this, or its time (pipeline.admit).
    UPDATE pipeline.outbox o SET (waits_for, due_at, reason, rate_limit) = (
        SELECT NULL, CASE WHEN o.has_turn IS FALSE OR w.waits THEN 'infinity'::timestamptz END,
               CASE WHEN o.has_turn IS FALSE THEN 'key' WHEN w.waits THEN 'rate_limit' END, CASE WHEN o.has_turn IS NOT FALSE THEN j.rate_limit END
        FROM pipeline.jobs j CROSS JOIN LATERAL (SELECT pipeline.waits_at_limit(j.rate_limit, o.phase_id) AS waits) w WHERE j.id = p_job)
    WHERE o.job_id = p_job AND o.waits_for = p_waits_for AND o.due_at > now();
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE pipeline.jobs j SET next_retry_at = now(), wait_reason = p_reason, updated_at = now(),
        result = coalesce(j.result, '{}') || jsonb_build_object(pipeline.phase_of_wait(p_job), p_result)
    WHERE j.id = p_job;
    PERFORM pipeline.wake();
    RETURN true;
END $$;

-- The phase that ended with the job's wait: the last one that succeeded. Since then the job may have been cancelled and replayed.
CREATE OR REPLACE FUNCTION pipeline.phase_of_wait(p_job uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT t.phase FROM pipeline.attempts t WHERE t.job_id = p_job AND t.outcome = 'succeeded' ORDER BY t.fence DESC LIMIT 1
$$;

-- A replayed job waits for what it waited for when it was cancelled. The time of that wait went on meanwhile: where it is over,
-- its default stands. Children were cancelled with the job: once the last of them is counted, their ends are the answer.
CREATE OR REPLACE FUNCTION pipeline.wait_once_more(p_job pipeline.jobs) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_until timestamptz := coalesce((SELECT t.due_at FROM pipeline.attempts t WHERE t.job_id = p_job.id ORDER BY t.fence DESC LIMIT 1), 'infinity');
    v_reason text := split_part(p_job.waited_for, ':', 1);
BEGIN
    IF v_until > now() THEN
        UPDATE pipeline.outbox o SET due_at = v_until, waits_for = p_job.waited_for, reason = v_reason, rate_limit = NULL WHERE o.job_id = p_job.id;
    END IF;
    UPDATE pipeline.jobs j SET waited_for = NULL, next_retry_at = nullif(v_until, 'infinity'), wait_reason = v_reason WHERE j.id = p_job.id;
    IF v_reason = 'children' THEN
        PERFORM pg_notify('pipeline_maintenance', 'batch') WHERE NOT pipeline.finish_batch(substr(p_job.waited_for, 10)::uuid);
    END IF;
END $$;
