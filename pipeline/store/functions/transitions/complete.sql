-- The phase succeeded: hand over to the next one, or succeed. History, next send and transition are one
-- statement; each row needs its fence. A hand-over whose gate is open leaves already marked as sent by this
-- worker, which publishes it after the commit. For a next phase without a pool the worker may hold a grant
-- (p_granted, see pipeline.send_credits), which spares counting at every hand-over. A worker in whose queues nothing waits
-- may go on with the job itself (p_continue, the queue it would go on in): the next phase is claimed here and now,
-- under a new fence, and the message at hand carries the job further. Not if anybody waits before that phase, or if
-- one failure could end the job there: its message would be dead-lettered in the wrong queue.
-- Verdicts: 'done', 'handed_over', 'continued', 'lost', 'repeated' when this very attempt had committed before, or
-- 'locked' when another transaction holds the row: nothing was done for it, ask again.
-- Nearly all are last phases or covered by a grant, of phases without a pool and jobs without a batch: one plain
-- statement moves those, and only what it did not move is looked at closely.
CREATE OR REPLACE FUNCTION pipeline.complete(p_worker integer, p_ids uuid[], p_fences bigint[], p_results jsonb[],
                                             p_granted boolean[] DEFAULT NULL, p_continue text[] DEFAULT NULL)
RETURNS TABLE (place integer, verdict text, queue text, actor text, send bigint, max_attempts integer, sent_at timestamptz,
               fence bigint, body jsonb, result jsonb)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_moved integer[];
BEGIN
    FOR place, verdict, queue, actor, send, max_attempts, sent_at, fence, body, result IN
        WITH free AS MATERIALIZED (
            SELECT j.id FROM pipeline.jobs j WHERE j.id = ANY (p_ids) FOR NO KEY UPDATE SKIP LOCKED
        ), moved AS (
            UPDATE pipeline.jobs j
            SET status = CASE WHEN a.next_id IS NULL THEN 'succeeded' WHEN a.continues THEN 'running' ELSE 'pending' END,
                phase = coalesce(a.next_phase, j.phase), max_attempts = coalesce(a.max_attempts, j.max_attempts),
                fence = CASE WHEN a.continues THEN j.fence + 1 ELSE j.fence END,
                send = CASE WHEN a.continues THEN j.send ELSE j.send + 1 END,
                message_phase_id = CASE WHEN a.continues THEN coalesce(j.message_phase_id, a.phase_id) END,
                attempts = CASE WHEN a.next_id IS NULL THEN j.attempts ELSE 0 END,
                crashes = CASE WHEN a.next_id IS NULL THEN j.crashes ELSE 0 END,
                result = CASE WHEN a.result IS NULL THEN j.result
                              ELSE coalesce(j.result, '{}') || jsonb_build_object(j.phase, a.result) END,
                completed_at = CASE WHEN a.next_id IS NULL THEN now() END,
                ready_at = now(), updated_at = now(), locked_by = CASE WHEN a.continues THEN j.locked_by END,
                locked_at = CASE WHEN a.continues THEN now() END, heartbeat_at = CASE WHEN a.continues THEN now() END,
                sent_at = CASE WHEN a.continues THEN now() END, delivery = CASE WHEN a.continues THEN j.delivery END,
                isolated = CASE WHEN a.continues THEN false END, slot = NULL, next_retry_at = NULL, wait_reason = NULL,
                waits = 0, progress_done = NULL, progress_total = NULL, error_message = NULL,
                rate_limit = CASE WHEN a.next_id IS NULL THEN j.rate_limit END
            FROM (SELECT a.place, a.id, a.fence, a.result, h.attempts, h.ready_at, h.next_retry_at, h.sent_at,
                         h.locked_at, h.phase, h.wait_reason, ph.id AS phase_id, nx.id AS next_id,
                         nx.phase AS next_phase, nx.queue, nx.actor, nx.max_attempts, o.continues
                  FROM unnest(p_ids, p_fences, p_results, p_granted, p_continue)
                       WITH ORDINALITY AS a(id, fence, result, granted, continuing, place)
                       -- Read without a lock: nothing noted here changes while this fence holds.
                       JOIN free ON free.id = a.id JOIN pipeline.jobs h ON h.id = a.id AND h.fence = a.fence
                       JOIN pipeline.phases ph ON ph.workflow = h.workflow AND ph.phase = h.phase
                       LEFT JOIN pipeline.phases nx ON nx.id = ph.next_id
                       CROSS JOIN LATERAL (SELECT CASE WHEN nx.queue = a.continuing THEN
                           NOT nx.isolated AND nx.max_attempts > 1 AND nx.max_crashes > 1
                           AND (nx.paused_until > now()) IS NOT TRUE AND NOT pipeline.has_waiting(nx.id)
                           ELSE false END AS continues) o
                  WHERE ph.pool IS NULL AND h.batch_id IS NULL
                    AND (nx.id IS NULL OR ((a.granted OR o.continues) AND nx.pool IS NULL AND nx.throttle_count IS NULL))
                  ORDER BY a.id) a
            -- Only a running job has a holder.
            WHERE j.id = a.id AND j.fence = a.fence AND j.locked_by IS NOT NULL
            RETURNING a.place::integer, j.id, j.send, j.fence AS new_fence, a.next_id, a.continues, a.queue, a.actor,
                      a.max_attempts, a.fence, a.attempts, a.ready_at, a.next_retry_at, a.sent_at, a.locked_at,
                      a.phase, a.wait_reason, j.body, j.result
        ), history AS (
            INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, due_at, sent_at, started_at, finished_at,
                                  phase, outcome, worker_no, wait_reason)
            SELECT m.id, m.fence, m.attempts + 1, m.ready_at, m.next_retry_at, m.sent_at, m.locked_at, now(),
                   m.phase, 'succeeded', p_worker, m.wait_reason
            FROM moved m
        ), handed AS (
            UPDATE pipeline.outbox o SET phase_id = m.next_id, seq = DEFAULT, sent_at = now(), sent_by = p_worker, rate_limit = NULL,
                                reserved = false
            FROM moved m WHERE o.job_id = m.id AND m.next_id IS NOT NULL AND NOT m.continues
        ), ended AS (
            DELETE FROM pipeline.outbox o USING moved m WHERE o.job_id = m.id AND m.next_id IS NULL
        )
        SELECT m.place,
               CASE WHEN m.next_id IS NULL THEN 'done' WHEN m.continues THEN 'continued' ELSE 'handed_over' END,
               m.queue, m.actor, m.send, m.max_attempts, CASE WHEN m.next_id IS NOT NULL THEN now() END,
               CASE WHEN m.continues THEN m.new_fence END, CASE WHEN m.continues THEN m.body END,
               CASE WHEN m.continues THEN m.result END
        FROM moved m
    LOOP
        v_moved := v_moved || place;
        RETURN NEXT;
    END LOOP;
    IF cardinality(v_moved) = cardinality(p_ids) THEN RETURN; END IF;
    RETURN QUERY SELECT * FROM pipeline.complete_carefully(
        p_worker, p_ids, p_fences, p_results, p_granted, coalesce(v_moved, '{}'));
END $$;

-- The whole look: gates, pools, batches, repeats, lost claims and locked rows.
CREATE OR REPLACE FUNCTION pipeline.complete_carefully(
    p_worker integer, p_ids uuid[], p_fences bigint[], p_results jsonb[], p_granted boolean[], p_but integer[])
RETURNS TABLE (place integer, verdict text, queue text, actor text, send bigint, max_attempts integer, sent_at timestamptz,
               fence bigint, body jsonb, result jsonb)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_free uuid[];
    v_children uuid[];
    v_pooled text[];
    v_child uuid;
    v_here text;
    v_next text;
BEGIN
    v_free := ARRAY(SELECT j.id FROM pipeline.jobs j WHERE j.id = ANY (p_ids) FOR NO KEY UPDATE SKIP LOCKED);
    FOR place, verdict, queue, actor, send, max_attempts, sent_at, fence, body, result, v_child, v_here, v_next IN
    WITH ask AS (
        SELECT a.place::integer AS place, a.id, a.fence, a.result, a.granted
        FROM unnest(p_ids, p_fences, p_results, p_granted) WITH ORDINALITY AS a(id, fence, result, granted, place)
        WHERE a.place <> ALL (p_but)
    ), route AS MATERIALIZED (
        SELECT ask.place, ask.id, ask.fence AS held_fence, ask.result, h.attempts, h.ready_at, h.next_retry_at,
               h.sent_at AS was_sent, h.locked_at, h.phase, h.wait_reason, h.batch_id,
               CASE WHEN ph.pool IS NOT NULL THEN ph.queue END AS pooled_here,
               CASE WHEN nx.pool IS NOT NULL THEN nx.queue END AS pooled_next,
               nx.id AS next_id, nx.phase AS next_phase, nx.queue AS next_queue,
               nx.actor AS next_actor, nx.max_attempts AS next_max,
               ask.granted AND nx.pool IS NULL AND nx.throttle_count IS NULL AS granted,
               row_number() OVER (PARTITION BY nx.id ORDER BY ask.place) AS turn
        FROM ask JOIN pipeline.jobs h ON h.id = ask.id
             JOIN pipeline.phases ph ON ph.workflow = h.workflow AND ph.phase = h.phase
             LEFT JOIN pipeline.phases nx ON nx.id = ph.next_id
        WHERE h.fence = ask.fence AND h.locked_by IS NOT NULL AND h.id = ANY (v_free)
    ), gate AS MATERIALIZED (
        SELECT n.id, n.behind, CASE WHEN n.behind OR n.throttle_count IS NOT NULL THEN 0 ELSE pipeline.capacity(n.nx) END AS room
        FROM (SELECT nx, nx.id, nx.throttle_count, pipeline.has_waiting(nx.id) AS behind
              FROM pipeline.phases nx WHERE nx.id IN (SELECT next_id FROM route WHERE granted IS NOT TRUE) OFFSET 0) n
    ), moved AS (
        UPDATE pipeline.jobs j
        SET status = CASE WHEN r.next_id IS NULL THEN 'succeeded' ELSE 'pending' END,
            phase = coalesce(r.next_phase, j.phase), max_attempts = coalesce(r.next_max, j.max_attempts),
            send = j.send + 1, message_phase_id = NULL,
            attempts = CASE WHEN r.next_id IS NULL THEN j.attempts ELSE 0 END,
            crashes = CASE WHEN r.next_id IS NULL THEN j.crashes ELSE 0 END,
            result = CASE WHEN r.result IS NULL THEN j.result
                          ELSE coalesce(j.result, '{}') || jsonb_build_object(j.phase, r.result) END,
            completed_at = CASE WHEN r.next_id IS NULL THEN now() END,
            ready_at = now(), updated_at = now(), locked_by = NULL, locked_at = NULL, heartbeat_at = NULL,
            sent_at = NULL, delivery = NULL, slot = NULL, isolated = NULL, next_retry_at = NULL, wait_reason = NULL,
            waits = 0, progress_done = NULL, progress_total = NULL, error_message = NULL,
            -- The rate limit is the first phase's outside system.
            rate_limit = CASE WHEN r.next_id IS NULL THEN j.rate_limit END
        FROM route r WHERE j.id = r.id AND j.fence = r.held_fence AND j.locked_by IS NOT NULL
        RETURNING j.id, j.send, r.place
    ), history AS (
        INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, due_at, sent_at, started_at, finished_at,
                              phase, outcome, worker_no, wait_reason)
        SELECT r.id, r.held_fence, r.attempts + 1, r.ready_at, r.next_retry_at, r.was_sent, r.locked_at, now(),
               r.phase, 'succeeded', p_worker, r.wait_reason
        FROM moved m JOIN route r ON r.place = m.place
    ), handed AS (
        UPDATE pipeline.outbox o SET phase_id = n.next_id, seq = DEFAULT, rate_limit = NULL, reserved = false,
                            sent_at = CASE WHEN n.sent THEN now() END, sent_by = CASE WHEN n.sent THEN p_worker END
        FROM (SELECT r.id, r.next_id, r.granted OR r.turn <= g.room AS sent
              FROM moved m JOIN route r ON r.place = m.place LEFT JOIN gate g ON g.id = r.next_id
              WHERE r.next_id IS NOT NULL ORDER BY r.place) n
        WHERE o.job_id = n.id
        RETURNING o.job_id, o.sent_at
    ), ended AS (
        DELETE FROM pipeline.outbox o USING moved m JOIN route r ON r.place = m.place
        WHERE o.job_id = m.id AND r.next_id IS NULL
    ), told AS (
        -- The relay looks again by itself while jobs wait; only the first to wait must wake it.
        SELECT pg_notify('pipeline_relay', '') FROM (
            SELECT 1 FROM route r JOIN gate g ON g.id = r.next_id
            WHERE r.granted IS NOT TRUE AND r.turn > g.room AND NOT g.behind LIMIT 1) w
    )
    SELECT ask.place,
           CASE WHEN m.id IS NOT NULL AND r.next_id IS NULL THEN 'done'
                WHEN m.id IS NOT NULL THEN 'handed_over'
                WHEN w.fence IS NOT NULL THEN 'continued'
                ELSE CASE pipeline.not_held(ask.id, ask.fence)
                     WHEN 'succeeded' THEN 'repeated' WHEN 'locked' THEN 'locked' ELSE 'lost' END END,
           coalesce(r.next_queue, w.queue), coalesce(r.next_actor, w.actor), coalesce(m.send, w.send),
           coalesce(r.next_max, w.max_attempts), coalesce(h.sent_at, w.sent_at), w.fence, w.body, w.result,
           CASE WHEN m.id IS NOT NULL AND r.next_id IS NULL AND r.batch_id IS NOT NULL THEN m.id END,
           r.pooled_here, r.pooled_next
    FROM ask LEFT JOIN moved m ON m.place = ask.place LEFT JOIN route r ON r.place = ask.place
         LEFT JOIN handed h ON h.job_id = ask.id AND m.id IS NOT NULL
         -- It went on with this very worker, and only the answer was lost.
         LEFT JOIN LATERAL (
             SELECT j.fence, ph.queue, ph.actor, j.send, j.max_attempts, j.sent_at, j.body, j.result
             FROM pipeline.attempts t JOIN pipeline.jobs j ON j.id = t.job_id AND j.fence = t.fence + 1
                  JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
             WHERE t.job_id = ask.id AND t.fence = ask.fence AND t.outcome = 'succeeded'
               AND j.message_phase_id IS NOT NULL AND t.worker_no = p_worker AND j.locked_at = t.finished_at LIMIT 1) w
             ON m.id IS NULL
         LEFT JOIN told ON true
    ORDER BY ask.place
    LOOP
        v_children := v_children || v_child;
        v_pooled := v_pooled || v_here || v_next;
        RETURN NEXT;
    END LOOP;
    IF array_remove(v_children, NULL) <> '{}' THEN
        PERFORM pipeline.count_children(v_children);
    END IF;
    -- A processor that is free now, and jobs that wait before a phase with a pool, may need the relay.
    IF array_remove(v_pooled, NULL) <> '{}' THEN
        PERFORM pipeline.wake_relay(v_pooled);
    END IF;
END $$;
