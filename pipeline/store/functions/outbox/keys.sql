-- A key belongs to one job of its workflow at a time. Whose it is stands in pipeline.keys; whether that job still keeps
-- it is read in the same statement, so that the answer is of one moment. Nobody waits here for a transaction that claims,
-- completes or cancels a job: those do not touch the keys. A submit waits for another one of the very same key only.

-- Who has the key, and whether it is kept from others: until a time, for as long as its job is there ('infinity'), or
-- until its job has ended (null). No row: nobody has had it.
CREATE OR REPLACE FUNCTION pipeline.key_holder(p_workflow text, p_key text, OUT job_id uuid, OUT held boolean)
RETURNS SETOF record LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT k.job_id, j.id IS NOT NULL AND CASE WHEN k.until IS NULL THEN j.completed_at IS NULL ELSE k.until > now() END
    FROM pipeline.keys k LEFT JOIN pipeline.jobs j ON j.id = k.job_id WHERE k.workflow = p_workflow AND k.key = p_key
    -- Looked up one by one, however many keys somebody asks for.
    OFFSET 0
$$;

-- Keys for new jobs (null: none). Returns for each of them the job that has its key: itself, or the one that the caller is
-- to be answered with. p_replaces: that one waits unsent, and is held so until this transaction ends.
-- Of several jobs with one key the first gets it, or the last, if it is to replace the others.
-- New keys are added first and in their order, others taken over after that in the same order: two callers with the same
-- keys never wait for one another in a circle.
CREATE OR REPLACE FUNCTION pipeline.take_keys(p_workflow text, p_keys text[], p_jobs uuid[], p_until timestamptz, p_replaces boolean)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    v_keys text[];
    v_jobs uuid[];
    v_known boolean[];
BEGIN
    IF cardinality(p_keys) = 1 AND p_keys[1] IS NOT NULL THEN
        RETURN ARRAY[pipeline.take_key(p_workflow, p_keys[1], p_jobs[1], p_until, p_replaces)];
    END IF;
    WITH wanted AS MATERIALIZED (
        SELECT a.key, a.job, h.job_id AS holder, h.held AND NOT p_replaces AS kept FROM (
            SELECT DISTINCT ON (u.key) u.key, u.job FROM unnest(p_keys, p_jobs) WITH ORDINALITY AS u(key, job, place)
            WHERE u.key IS NOT NULL ORDER BY u.key, CASE WHEN p_replaces THEN -u.place ELSE u.place END) a
        LEFT JOIN LATERAL pipeline.key_holder(p_workflow, a.key) h ON true
    ), added AS (
        INSERT INTO pipeline.keys AS k (workflow, key, job_id, until)
        SELECT p_workflow, w.key, w.job, p_until FROM wanted w WHERE w.holder IS NULL
        ORDER BY w.key ON CONFLICT DO NOTHING RETURNING k.key
    )
    SELECT array_agg(w.key ORDER BY w.key), array_agg(CASE WHEN w.kept THEN w.holder ELSE w.job END ORDER BY w.key),
           array_agg(w.kept IS TRUE OR a.key IS NOT NULL ORDER BY w.key)
    INTO v_keys, v_jobs, v_known FROM wanted w LEFT JOIN added a ON a.key = w.key;
    FOR i IN 1 .. coalesce(cardinality(v_keys), 0) LOOP
        IF NOT v_known[i] THEN
            v_jobs[i] := pipeline.take_key(p_workflow, v_keys[i], v_jobs[i], p_until, p_replaces);
        END IF;
    END LOOP;
    RETURN ARRAY(SELECT coalesce(h.job, a.job) FROM unnest(p_keys, p_jobs) WITH ORDINALITY AS a(key, job, place)
                 LEFT JOIN unnest(v_keys, v_jobs) AS h(key, job) ON h.key = a.key ORDER BY a.place);
END $$;

-- One key that somebody had when it was looked up. A key that is taken over is locked first and looked at once more: its
-- job may have been replayed, or another submit may have been faster.
CREATE OR REPLACE FUNCTION pipeline.take_key(p_workflow text, p_key text, p_job uuid, p_until timestamptz, p_replaces boolean)
RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    v_seen record;
BEGIN
    LOOP
        INSERT INTO pipeline.keys (workflow, key, job_id, until)
        SELECT p_workflow, p_key, p_job, p_until WHERE NOT EXISTS (SELECT 1 FROM pipeline.key_holder(p_workflow, p_key))
        ON CONFLICT DO NOTHING;
        IF FOUND THEN RETURN p_job; END IF;
        SELECT * INTO v_seen FROM pipeline.key_holder(p_workflow, p_key);
        CONTINUE WHEN NOT FOUND;
        IF v_seen.held AND NOT p_replaces THEN RETURN v_seen.job_id; END IF;
        PERFORM 1 FROM pipeline.keys k WHERE k.workflow = p_workflow AND k.key = p_key FOR UPDATE;
        SELECT * INTO v_seen FROM pipeline.key_holder(p_workflow, p_key);
        CONTINUE WHEN NOT FOUND;
        IF v_seen.held AND (NOT p_replaces OR pipeline.hold_unsent(v_seen.job_id)) THEN RETURN v_seen.job_id; END IF;
        UPDATE pipeline.keys k SET job_id = p_job, until = p_until WHERE k.workflow = p_workflow AND k.key = p_key;
        RETURN p_job;
    END LOOP;
END $$;

-- Whether the job has not been sent and never begun, and a promise that it will not until this transaction ends. A job
-- that another transaction has (the gate sends it, a worker claims it) counts as sent, and none of its rows stays locked.
CREATE OR REPLACE FUNCTION pipeline.hold_unsent(p_job uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM pipeline.jobs j WHERE j.id = p_job AND j.status = 'pending' AND j.fence = 0 FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        PERFORM 1 FROM pipeline.outbox o WHERE o.job_id = p_job AND o.sent_at IS NULL FOR UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = 'PL000', MESSAGE = 'sent'; END IF;
    RETURN true;
EXCEPTION WHEN SQLSTATE 'PL000' THEN
    RETURN false;
END $$;

-- Whether a failed job may start again: not while another job that has not ended has its key. Its row is the caller's.
-- A key that somebody is taking just now is not waited for: a worker may ask.
CREATE OR REPLACE FUNCTION pipeline.take_key_again(p_job pipeline.jobs) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_until timestamptz;
BEGIN
    SELECT k.until INTO v_until FROM pipeline.keys k
    WHERE k.workflow = p_job.workflow AND k.key = p_job.idempotency_key FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NOT EXISTS (SELECT 1 FROM pipeline.keys k WHERE k.workflow = p_job.workflow AND k.key = p_job.idempotency_key);
    END IF;
    IF v_until IS NOT NULL THEN RETURN true; END IF;
    -- A statement of its own: it sees what was committed before the row was locked.
    IF EXISTS (SELECT 1 FROM pipeline.key_holder(p_job.workflow, p_job.idempotency_key) h WHERE h.held) THEN RETURN false; END IF;
    UPDATE pipeline.keys k SET job_id = p_job.id WHERE k.workflow = p_job.workflow AND k.key = p_job.idempotency_key AND k.job_id <> p_job.id;
    RETURN true;
END $$;

-- What jobs that are about to be removed leave in other tables. A key that is being taken by a submit is left to it.
CREATE OR REPLACE FUNCTION pipeline.forget(p_jobs uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM pipeline.keys WHERE ctid = ANY (ARRAY(
        SELECT k.ctid FROM pipeline.jobs j JOIN pipeline.keys k ON k.workflow = j.workflow AND k.key = j.idempotency_key AND k.job_id = j.id
        WHERE j.id = ANY (p_jobs) FOR UPDATE OF k SKIP LOCKED));
    DELETE FROM pipeline.tags t USING (
        SELECT j.id, tag FROM pipeline.jobs j CROSS JOIN unnest(j.tags) AS tag WHERE j.id = ANY (p_jobs)) g
    WHERE t.tag = g.tag AND t.job_id = g.id;
    DELETE FROM pipeline.attempts WHERE job_id = ANY (p_jobs);
    DELETE FROM pipeline.attempt_logs WHERE job_id = ANY (p_jobs);
    DELETE FROM pipeline.steps WHERE job_id = ANY (p_jobs);
    DELETE FROM pipeline.signals WHERE job_id = ANY (p_jobs);
END $$;
