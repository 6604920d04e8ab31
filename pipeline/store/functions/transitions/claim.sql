-- Claim jobs by id for the idle threads of one process: pending or retryable, same phase, same delivery number. Each row goes
-- to one delivery; a claim repeated by the same delivery (its COMMIT was lost) gets the same answer. Every ask gets a
-- verdict: 'claimed', or why not. 'locked': some other transaction holds the row, perhaps an application's for a long
-- time; ask again, nobody waits for it here. 'paused', 'pool_full': the job waits at the gate again. 'expired': it has failed, and never starts.
CREATE OR REPLACE FUNCTION pipeline.claim(
    p_worker text, p_ids uuid[], p_queues text[], p_sends bigint[], p_deliveries bigint[], p_sent timestamptz[])
RETURNS TABLE (place integer, verdict text, fence bigint, attempts integer, max_attempts integer, crashes integer,
               isolated boolean, priority smallint, holder text, body jsonb, result jsonb, trace_id text, span_id text, rate_limit text)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_epoch bigint := pipeline.epoch();
BEGIN
    RETURN QUERY
    WITH seen AS MATERIALIZED (
        SELECT j.* FROM pipeline.jobs j WHERE j.id = ANY (p_ids) FOR NO KEY UPDATE SKIP LOCKED
    ), looked AS (
        SELECT a.place::integer AS place, a.id, a.delivery, ph.rate_limit AS template, a.sent_at, s.id IS NOT NULL AS free, s.locked_by AS holder,
               ph.isolated OR s.crashes > 0 AS isolated,
               CASE
                   WHEN s.id IS NULL THEN 'unknown_job'
                   WHEN ph.id IS NULL OR s.workflow <> ph.workflow THEN 'other_phase'
                   WHEN s.status = 'running' AND s.locked_by = p_worker AND s.delivery = a.delivery THEN 'claimed'
                   WHEN s.status = 'succeeded' THEN 'finished'
                   WHEN s.status = 'cancelled' THEN 'cancelled'
                   -- Its holder carries it through a later phase, with this message in hand (see pipeline.complete).
                   WHEN s.status = 'running' AND s.message_phase_id = ph.id AND s.send = a.send THEN 'running'
                   WHEN s.phase <> ph.phase THEN 'other_phase'
                   WHEN a.send <> s.send THEN 'superseded'
                   WHEN s.status = 'failed' THEN CASE WHEN a.send = s.send THEN 'failed' ELSE 'finished' END
                   WHEN s.status = 'running' THEN 'running'
                   WHEN s.fence = 0 AND s.expires_at <= now() THEN 'expired'
                   WHEN a.send IS NULL AND NOT EXISTS (
                       SELECT 1 FROM pipeline.outbox o WHERE o.job_id = s.id AND o.sent_at IS NULL AND o.due_at IS NULL)
                       THEN 'already_queued'
                   WHEN ph.paused_until > now() THEN 'paused'
                   -- The gate gave it a place, unless an application sent the message.
                   WHEN ph.pool IS NOT NULL AND NOT pipeline.own_place(ph.id, ph.pool, s.id) THEN 'pool_full'
                   ELSE 'ready'
               END AS verdict
        FROM unnest(p_ids, p_queues, p_sends, p_deliveries, p_sent) WITH ORDINALITY AS a(id, queue, send, delivery, sent_at, place)
             LEFT JOIN seen s ON s.id = a.id LEFT JOIN pipeline.phases ph ON ph.queue = a.queue
    ), judged AS MATERIALIZED (
        -- Of several good messages for one job the first gets it; the others meet it running here.
        SELECT k.*, k.verdict = 'ready' AND row_number() OVER (PARTITION BY k.id, k.verdict ORDER BY k.place) > 1 AS again
        FROM looked k
    ), taken AS (
        UPDATE pipeline.jobs j
        SET status = 'running', fence = pipeline.next_fence(j.fence, v_epoch), locked_by = p_worker, locked_at = now(), heartbeat_at = now(),
            updated_at = now(), sent_at = coalesce(g.sent_at, now()), delivery = g.delivery, isolated = g.isolated
        FROM judged g WHERE j.id = g.id AND g.verdict = 'ready' AND NOT g.again RETURNING j.id, j.fence
    ), early AS (
        -- It is out from now on, should the message have been there before the relay; and it has begun.
        UPDATE pipeline.outbox o SET sent_at = coalesce(o.sent_at, now()), due_at = NULL, reason = NULL, expires_at = NULL,
            has_turn = CASE WHEN o.turns_id IS NOT NULL THEN true END
        FROM taken t WHERE o.job_id = t.id AND (o.sent_at IS NULL OR o.expires_at IS NOT NULL)
    ), waiting AS MATERIALIZED (
        SELECT count(w.done) FROM (SELECT CASE g.verdict WHEN 'expired' THEN pipeline.expire(array_agg(g.id))::text
                                          ELSE pipeline.wait_again(array_agg(g.id), g.verdict)::text END AS done
                                   FROM judged g WHERE g.verdict IN ('paused', 'pool_full', 'expired') GROUP BY g.verdict) w
    )
    SELECT g.place,
           CASE WHEN g.again THEN 'running' WHEN g.verdict = 'ready' THEN 'claimed'
                WHEN NOT g.free AND EXISTS (SELECT 1 FROM pipeline.jobs l WHERE l.id = g.id) THEN 'locked' ELSE g.verdict END,
           coalesce(t.fence, s.fence), s.attempts, s.max_attempts, s.crashes,
           CASE WHEN g.verdict = 'ready' THEN g.isolated ELSE s.isolated END, s.priority,
           CASE WHEN g.again THEN p_worker ELSE g.holder END,
           CASE WHEN g.verdict IN ('ready', 'claimed') THEN s.body END, s.result, s.trace_id, s.span_id,
           -- Of a job that waited before its phase had a rate limit; empty if its body does not fill the name.
           coalesce(s.rate_limit, CASE WHEN g.template IS NOT NULL THEN coalesce(pipeline.limit_name(g.template, s.body), '') END)
    FROM judged g LEFT JOIN seen s ON s.id = g.id LEFT JOIN taken t ON t.id = g.id CROSS JOIN waiting
    ORDER BY g.place;
END $$;
