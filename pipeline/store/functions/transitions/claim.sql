-- Claim jobs by id for the idle threads of one process: pending or retryable, same phase, same send number,
-- a free processor where the phase has a pool. Each row goes to one delivery; a claim repeated by the same
-- delivery (its COMMIT was lost) gets the same answer. Every ask gets a verdict: 'claimed', or why not. 'locked': some
-- other transaction holds the row, perhaps an application's for a long time; ask again, nobody waits for it here.
-- Nearly all are good tokens of open phases without a pool: one plain UPDATE takes those, and only what it
-- did not take is looked at closely.
CREATE OR REPLACE FUNCTION pipeline.claim(
    p_worker text, p_ids uuid[], p_queues text[], p_sends bigint[], p_deliveries bigint[], p_sent timestamptz[])
RETURNS TABLE (place integer, verdict text, fence bigint, attempts integer, max_attempts integer, crashes integer,
               isolated boolean, priority smallint, holder text, body jsonb, result jsonb, trace_id text, span_id text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_taken integer[];
BEGIN
    FOR place, fence, attempts, max_attempts, crashes, isolated, priority, body, result, trace_id, span_id IN
        WITH free AS MATERIALIZED (
            SELECT j.id FROM pipeline.jobs j WHERE j.id = ANY (p_ids) FOR NO KEY UPDATE SKIP LOCKED
        ), taken AS (
            UPDATE pipeline.jobs j
            SET status = 'running', fence = j.fence + 1, locked_by = p_worker, locked_at = now(), heartbeat_at = now(),
                updated_at = now(), sent_at = coalesce(a.sent_at, now()), delivery = a.delivery,
                isolated = a.isolated OR j.crashes > 0
            -- Of two deliveries of one job the first gets it.
            FROM (SELECT DISTINCT ON (a.id) a.place, a.id, a.send, a.delivery, a.sent_at, ph.workflow, ph.phase, ph.isolated
                  FROM unnest(p_ids, p_queues, p_sends, p_deliveries, p_sent)
                       WITH ORDINALITY AS a(id, queue, send, delivery, sent_at, place)
                       JOIN free ON free.id = a.id JOIN pipeline.phases ph ON ph.queue = a.queue
                  WHERE ph.pool IS NULL AND (ph.paused_until > now()) IS NOT TRUE ORDER BY a.id, a.place) a
            WHERE j.id = a.id AND j.send = a.send AND j.status IN ('pending', 'retryable')
              AND j.phase = a.phase AND j.workflow = a.workflow
            RETURNING a.place::integer, j.id, j.fence, j.attempts, j.max_attempts, j.crashes, j.isolated, j.priority,
                      j.body, j.result, j.trace_id, j.span_id
        ), early AS (
            -- It is out from now on, should the message have been there before the relay.
            UPDATE pipeline.outbox o SET sent_at = now(), due_at = NULL, reason = NULL FROM taken t
            WHERE o.job_id = t.id AND o.sent_at IS NULL
        )
        SELECT t.place, t.fence, t.attempts, t.max_attempts, t.crashes, t.isolated, t.priority, t.body, t.result,
               t.trace_id, t.span_id FROM taken t
    LOOP
        verdict := 'claimed';
        v_taken := v_taken || place;
        RETURN NEXT;
    END LOOP;
    IF cardinality(v_taken) = cardinality(p_ids) THEN RETURN; END IF;
    RETURN QUERY SELECT * FROM pipeline.claim_carefully(
        p_worker, p_ids, p_queues, p_sends, p_deliveries, p_sent, coalesce(v_taken, '{}'));
END $$;

-- The whole look: pools, pauses, duplicates, repeats and every reason to refuse.
CREATE OR REPLACE FUNCTION pipeline.claim_carefully(
    p_worker text, p_ids uuid[], p_queues text[], p_sends bigint[], p_deliveries bigint[], p_sent timestamptz[],
    p_but integer[])
RETURNS TABLE (place integer, verdict text, fence bigint, attempts integer, max_attempts integer, crashes integer,
               isolated boolean, priority smallint, holder text, body jsonb, result jsonb, trace_id text, span_id text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    -- Processors are given out under a lock, so that two processes never choose the same one.
    PERFORM pg_advisory_xact_lock('pipeline.phases'::regclass::oid::integer, pooled.id) FROM (
        SELECT id FROM pipeline.phases WHERE queue = ANY (p_queues) AND pool IS NOT NULL ORDER BY id) pooled;
    RETURN QUERY
    WITH ask AS (
        SELECT a.place::integer AS place, a.id, a.queue, a.send, a.delivery, a.sent_at
        FROM unnest(p_ids, p_queues, p_sends, p_deliveries, p_sent)
             WITH ORDINALITY AS a(id, queue, send, delivery, sent_at, place)
        WHERE a.place <> ALL (p_but)
    ), seen AS MATERIALIZED (
        SELECT j.* FROM pipeline.jobs j WHERE j.id = ANY (p_ids) FOR NO KEY UPDATE SKIP LOCKED
    ), looked AS (
        SELECT ask.place, ask.id, ask.delivery, ask.sent_at, ph.id AS phase_id, ph.workflow, ph.phase, ph.pool,
               ph.paused_until > now() AS paused,
               ph.isolated OR s.crashes > 0 AS isolated, s.locked_by AS holder,
               CASE
                   WHEN s.id IS NULL THEN
                       CASE WHEN EXISTS (SELECT 1 FROM pipeline.jobs l WHERE l.id = ask.id) THEN 'locked' ELSE 'unknown_job' END
                   WHEN ph.id IS NULL OR s.workflow <> ph.workflow THEN 'other_phase'
                   WHEN s.status = 'running' AND s.locked_by = p_worker AND s.delivery = ask.delivery THEN 'claimed'
                   WHEN s.status = 'succeeded' THEN 'finished'
                   WHEN s.status = 'cancelled' THEN 'cancelled'
                   -- It went on to a later phase with the message in its holder's hands (see pipeline.complete).
                   WHEN s.status = 'running' AND s.message_phase_id = ph.id AND s.send = ask.send THEN 'running'
                   WHEN s.phase <> ph.phase THEN 'other_phase'
                   WHEN ask.send <> s.send THEN 'superseded'
                   WHEN s.status = 'failed' THEN CASE WHEN ask.send = s.send THEN 'failed' ELSE 'finished' END
                   WHEN s.status = 'running' THEN 'running'
                   WHEN ask.send IS NULL AND NOT EXISTS (
                       SELECT 1 FROM pipeline.outbox o WHERE o.job_id = s.id AND o.sent_at IS NULL AND o.due_at IS NULL)
                       THEN 'already_queued'
                   ELSE 'ready'
               END AS verdict
        FROM ask LEFT JOIN seen s ON s.id = ask.id LEFT JOIN pipeline.phases ph ON ph.queue = ask.queue
    ), judged AS MATERIALIZED (
        -- Of several good tokens for one job the first gets it; the others meet it running here.
        SELECT l.place, l.id, l.delivery, l.sent_at, l.phase_id, l.workflow, l.phase, l.pool, l.paused, l.isolated,
               CASE WHEN l.again THEN p_worker ELSE l.holder END AS holder,
               CASE WHEN l.again THEN 'running' ELSE l.verdict END AS verdict
        FROM (SELECT k.*, k.verdict = 'ready'
                     AND row_number() OVER (PARTITION BY k.id, k.verdict ORDER BY k.place) > 1 AS again
              FROM looked k) l
    ), numbered AS (
        SELECT g.*, row_number() OVER (PARTITION BY g.phase_id ORDER BY g.place) AS turn
        FROM judged g WHERE g.verdict = 'ready'
    ), free AS (
        SELECT f.phase_id, f.slot, row_number() OVER (PARTITION BY f.phase_id ORDER BY f.slot) AS turn
        FROM (SELECT p.phase_id, s.slot
              FROM (SELECT DISTINCT phase_id, workflow, phase, pool FROM numbered WHERE pool IS NOT NULL) p
              CROSS JOIN LATERAL generate_series(1, p.pool) AS s(slot)
              WHERE NOT EXISTS (SELECT 1 FROM pipeline.jobs r WHERE r.processor = pipeline.processor(p.workflow, p.phase, s.slot))) f
    ), placed AS MATERIALIZED (
        SELECT n.*, free.slot, (n.pool IS NULL OR free.slot IS NOT NULL) AND n.paused IS NOT TRUE AS fits
        FROM numbered n LEFT JOIN free ON free.phase_id = n.phase_id AND free.turn = n.turn
    ), taken AS (
        UPDATE pipeline.jobs j
        SET status = 'running', fence = j.fence + 1, locked_by = p_worker, locked_at = now(), heartbeat_at = now(),
            updated_at = now(), sent_at = coalesce(p.sent_at, now()), delivery = p.delivery, slot = p.slot,
            isolated = p.isolated
        FROM placed p WHERE j.id = p.id AND p.fits RETURNING j.*
    ), early AS (
        UPDATE pipeline.outbox o SET sent_at = now(), due_at = NULL, reason = NULL FROM taken t
        WHERE o.job_id = t.id AND o.sent_at IS NULL
    ), voided AS (
        UPDATE pipeline.jobs j SET send = j.send + 1, updated_at = now() FROM placed p WHERE j.id = p.id AND NOT p.fits
    ), waiting AS (
        UPDATE pipeline.outbox o SET sent_at = NULL, sent_by = NULL, reason = CASE WHEN p.paused THEN 'paused' ELSE 'pool_full' END
        FROM placed p WHERE o.job_id = p.id AND NOT p.fits
    )
    SELECT g.place,
           CASE WHEN t.id IS NOT NULL THEN 'claimed' WHEN g.verdict = 'ready' THEN CASE WHEN g.paused THEN 'paused' ELSE 'pool_full' END ELSE g.verdict END,
           coalesce(t.fence, s.fence), coalesce(t.attempts, s.attempts), s.max_attempts,
           coalesce(t.crashes, s.crashes), coalesce(t.isolated, s.isolated), s.priority, g.holder,
           CASE WHEN g.verdict IN ('ready', 'claimed') THEN s.body END, s.result, s.trace_id, s.span_id
    FROM judged g LEFT JOIN seen s ON s.id = g.id
         LEFT JOIN taken t ON t.id = g.id AND g.verdict = 'ready'
    ORDER BY g.place;
    PERFORM pipeline.wake_relay(p_queues);
END $$;
