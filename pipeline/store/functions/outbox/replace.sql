-- What submit's options about keys, tags and expiry mean.

-- The keys of jobs: as given, or made from the body where p_derives. The same body has the same key, however it was
-- written: jsonb knows neither the order of names nor spaces.
CREATE OR REPLACE FUNCTION pipeline.keys_of(p_bodies jsonb[], p_keys text[], p_derives boolean) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(CASE WHEN b.key IS NULL AND p_derives
                     THEN 'body:' || encode(sha256(convert_to(b.body::text, 'UTF8')), 'hex') ELSE b.key END ORDER BY b.place)
    FROM unnest(p_bodies, p_keys) WITH ORDINALITY AS b(body, key, place)
$$;

-- Until when a job that is submitted now keeps its key; null: until it has ended.
CREATE OR REPLACE FUNCTION pipeline.kept_until(p_unique text, p_debounce interval) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (p_unique IS NOT NULL AND p_debounce IS NOT NULL) OR p_debounce <= interval '0' THEN
        RAISE EXCEPTION USING ERRCODE = 'PL009', MESSAGE = 'debounce is a time above zero, and not to be given with unique',
            HINT = 'debounce replaces a job that waits, as unique => ''replace'' does, and moves its time on';
    END IF;
    IF p_unique IN ('open', 'replace') OR p_debounce IS NOT NULL THEN RETURN NULL; END IF;
    IF p_unique IS NULL THEN RETURN 'infinity'; END IF;
    BEGIN
        IF p_unique::interval > interval '0' THEN RETURN now() + p_unique::interval; END IF;
    EXCEPTION WHEN data_exception THEN NULL;
    END;
    RAISE EXCEPTION USING ERRCODE = 'PL009', MESSAGE = format('unique cannot be %L', p_unique),
        HINT = 'it is ''open'', ''replace'' or a time above zero such as ''1 hour''';
END $$;

CREATE OR REPLACE FUNCTION pipeline.refuse_keys(p_keys text[], p_jobs integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(p_keys) <> p_jobs THEN
        RAISE EXCEPTION USING ERRCODE = 'PL010', MESSAGE = format('%s keys are given for %s bodies', cardinality(p_keys), p_jobs),
            HINT = 'each body has its key at the same place, or null there';
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(p_keys) AS k WHERE length(k) NOT BETWEEN 1 AND 500) THEN
        RAISE EXCEPTION USING ERRCODE = 'PL010', MESSAGE = 'a key has 1 to 500 characters',
            HINT = 'use a digest of what is longer';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION pipeline.refuse_tags(p_tags text[]) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF cardinality(p_tags) > 20 THEN
        RAISE EXCEPTION USING ERRCODE = 'PL008', MESSAGE = format('%s tags are too many, the limit is 20', cardinality(p_tags)),
            HINT = 'what belongs to one job alone belongs into its body';
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(p_tags) AS t WHERE t IS NULL OR length(t) NOT BETWEEN 1 AND 64) THEN
        RAISE EXCEPTION USING ERRCODE = 'PL008', MESSAGE = 'a tag has 1 to 64 characters',
            HINT = 'use short words, such as vip or eu';
    END IF;
END $$;

-- Jobs that wait unsent become what was submitted last under their key. The caller holds their rows (pipeline.hold_unsent).
-- They keep their places in the order.
CREATE OR REPLACE FUNCTION pipeline.replace_unsent(p_jobs uuid[], p_new uuid[], p_bodies jsonb[], p_priority integer,
    p_moment timestamptz, p_due timestamptz, p_reason text, p_rate_limit text, p_tags text[], p_expires timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_jobs uuid[];
    v_bodies jsonb[];
BEGIN
    SELECT array_agg(l.job), array_agg(l.body) INTO v_jobs, v_bodies FROM (
        SELECT DISTINCT ON (a.job) a.job, a.new, a.body FROM unnest(p_jobs, p_new, p_bodies) WITH ORDINALITY AS a(job, new, body, place)
        ORDER BY a.job, a.place DESC) l
    WHERE l.job <> l.new;
    IF v_jobs IS NULL THEN RETURN; END IF;
    DELETE FROM pipeline.tags t USING pipeline.jobs j
    WHERE j.id = ANY (v_jobs) AND t.job_id = j.id AND t.tag = ANY (j.tags) AND t.tag <> ALL (coalesce(p_tags, '{}'));
    UPDATE pipeline.jobs j SET body = n.body, priority = p_priority, tags = p_tags, expires_at = p_expires,
        rate_limit = coalesce(p_rate_limit, (SELECT pipeline.limit_name(ph.rate_limit, n.body) FROM pipeline.phases ph WHERE ph.workflow = j.workflow AND ph.position = 1)),
        next_retry_at = p_moment, updated_at = now()
    FROM unnest(v_jobs, v_bodies) AS n(job, body) WHERE j.id = n.job;
    UPDATE pipeline.outbox o SET priority = p_priority, expires_at = p_expires,
        due_at = CASE WHEN w.waits THEN 'infinity' ELSE p_due END, reason = CASE WHEN w.waits THEN 'rate_limit' ELSE p_reason END,
        rate_limit = CASE WHEN t.id IS NULL THEN j.rate_limit END, turns_id = t.id,
        key = CASE WHEN t.id IS NOT NULL THEN pipeline.key_in(n.body, t.field) END, has_turn = CASE WHEN t.id IS NOT NULL THEN false END
    FROM unnest(v_jobs, v_bodies) AS n(job, body)
         JOIN pipeline.jobs j ON j.id = n.job JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.position = 1
         LEFT JOIN pipeline.turns t ON t.id = ph.turns_id
         CROSS JOIN LATERAL (SELECT p_due IS NULL AND t.id IS NULL AND pipeline.waits_at_limit(j.rate_limit, ph.id) AS waits) w
    WHERE o.job_id = n.job;
    PERFORM pipeline.wake();
END $$;
