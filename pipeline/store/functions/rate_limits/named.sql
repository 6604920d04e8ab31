-- The name of a rate limit for a job with this body: the template itself, or with fields of the body in it. Null where the body
-- does not fill it: a field is a text that is not empty, or a whole number.
CREATE OR REPLACE FUNCTION pipeline.limit_name(p_template text, p_body jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    v_name text;
BEGIN
    IF position('{' IN p_template) = 0 THEN RETURN p_template; END IF;
    -- Every second piece is a field.
    SELECT CASE WHEN bool_and(s.said IS NOT NULL) THEN string_agg(s.said, '' ORDER BY s.n) END INTO v_name FROM (
        SELECT p.n, CASE WHEN p.n % 2 = 1 THEN p.piece
                         WHEN jsonb_typeof(p_body -> p.piece) = 'string' THEN nullif(p_body ->> p.piece, '')
                         WHEN jsonb_typeof(p_body -> p.piece) = 'number' THEN substring(p_body ->> p.piece FROM '^-?[0-9]+$') END AS said
        FROM unnest(string_to_array(replace(p_template, '}', '{'), '{')) WITH ORDINALITY AS p(piece, n)) s;
    RETURN CASE WHEN length(v_name) > 200 THEN left(v_name, 100) || ':' || encode(sha256(convert_to(v_name, 'UTF8')), 'hex') ELSE v_name END;
END $$;

-- The same for a job of this phase.
CREATE OR REPLACE FUNCTION pipeline.limit_of(p_workflow text, p_phase text, p_body jsonb) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT pipeline.limit_name(ph.rate_limit, p_body) FROM pipeline.phases ph WHERE ph.workflow = p_workflow AND ph.phase = p_phase
$$;

-- The template of the phase from which this name was made; null if it was given otherwise, or is the template itself.
CREATE OR REPLACE FUNCTION pipeline.template_of(p_name text, p_phase integer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT ph.rate_limit FROM pipeline.phases ph WHERE ph.id = p_phase AND position('{' IN ph.rate_limit) > 0
        AND p_name LIKE regexp_replace(regexp_replace(ph.rate_limit, '([\\%_])', '\\\1', 'g'), '\{[^{}]*\}', '%', 'g')
$$;

-- A rate limit as it is in force: with the rate of its template unless it has one of its own. One that nobody has used yet is
-- as new, and has no row.
CREATE OR REPLACE FUNCTION pipeline.rate_limit_named(p_name text, p_phase integer) RETURNS pipeline.rate_limits LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_limit pipeline.rate_limits;
BEGIN
    SELECT * INTO v_limit FROM pipeline.rate_limits l WHERE l.name = p_name;
    IF NOT FOUND THEN
        v_limit.name := p_name; v_limit.burst := 1; v_limit.next_at := '-infinity'; v_limit.rate_is_set := false;
    END IF;
    IF NOT v_limit.rate_is_set AND v_limit.declared_rate IS NULL THEN
        v_limit.template := coalesce(v_limit.template, pipeline.template_of(p_name, p_phase));
        SELECT t.rate, t.burst INTO v_limit.rate, v_limit.burst FROM pipeline.rate_limits t WHERE t.name = v_limit.template;
        v_limit.burst := coalesce(v_limit.burst, 1);
    END IF;
    RETURN v_limit;
END $$;

-- Whether jobs that come to this rate limit wait for it at the gate: it has a rate, or its breaker lets them through one by one.
CREATE OR REPLACE FUNCTION pipeline.waits_at_limit(p_name text, p_phase integer) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_name IS NULL THEN RETURN false; END IF;
    RETURN (pipeline.rate_limit_named(p_name, p_phase)).rate IS NOT NULL OR pipeline.breaker_room(p_name) IS NOT NULL;
END $$;

-- Whether a worker may continue with a job of this rate limit without asking the gate.
CREATE OR REPLACE FUNCTION pipeline.limit_is_free(p_name text, p_phase integer) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_name IS NULL THEN RETURN true; END IF;
    RETURN NOT pipeline.waits_at_limit(p_name, p_phase)
        AND NOT EXISTS (SELECT 1 FROM pipeline.rate_limits l WHERE l.name = p_name AND l.paused_until > now());
END $$;

-- What a job waits for at this rate limit, in one word.
CREATE OR REPLACE FUNCTION pipeline.limit_reason(p_name text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT l.pause_reason FROM pipeline.rate_limits l WHERE l.name = p_name AND l.paused_until > now()),
                    CASE WHEN pipeline.breaker_room(p_name) IS NOT NULL THEN 'breaker' END, 'rate_limit')
$$;

-- Rate limits with their rate, pause and breaker, p_most of them after a name in their order; and how many jobs wait at the gate
-- (1,000 means at least so many).
CREATE OR REPLACE FUNCTION pipeline.list_limits(p_after text DEFAULT '', p_most integer DEFAULT 100)
RETURNS TABLE (name text, rate double precision, burst double precision, declared_rate double precision, rate_is_set boolean, template text,
               paused_until timestamptz, pause_reason text, waiting integer, breaker text, failures integer, open_until timestamptz, last_error text)
LANGUAGE sql STABLE AS $$
    SELECT n.name, l.rate, l.burst, l.declared_rate, coalesce(l.rate_is_set, false), l.template,
           CASE WHEN l.paused_until > now() THEN l.paused_until END, CASE WHEN l.paused_until > now() THEN l.pause_reason END,
           (SELECT count(*)::integer FROM (SELECT 1 FROM pipeline.outbox o WHERE o.rate_limit = n.name AND o.sent_at IS NULL LIMIT 1000) w),
           CASE WHEN b.name IS NULL THEN NULL WHEN b.open_until IS NULL THEN 'closed' WHEN b.open_until > now() THEN 'open' ELSE 'half-open' END,
           b.failures, b.open_until, b.last_error
    FROM (SELECT r.name FROM pipeline.rate_limits r WHERE r.name > p_after UNION SELECT k.name FROM pipeline.breakers k WHERE k.name > p_after
          ORDER BY name LIMIT p_most) n
         LEFT JOIN pipeline.rate_limits l ON l.name = n.name LEFT JOIN pipeline.breakers b ON b.name = n.name
    ORDER BY n.name
$$;
