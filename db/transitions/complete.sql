-- The phase succeeded: hand over to the next one, or succeed. History, next send and transition are one
-- statement; each row needs its fence. A hand-over whose gate is open leaves already marked as sent by this
-- worker, which publishes it after the commit. For a next phase without a pool the worker may hold a grant
-- (p_granted, see pipeline_grants), which spares counting at every hand-over. Verdicts: 'done', 'handed_over',
-- 'lost', or 'repeated' when this very attempt had committed before.
CREATE OR REPLACE FUNCTION pipeline_complete(p_worker integer, p_ids uuid[], p_fences bigint[], p_results jsonb[],
                                             p_granted boolean[] DEFAULT NULL)
RETURNS TABLE (place integer, verdict text, queue text, actor text, send bigint, max_attempts integer, sent_at timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_queues text[];
BEGIN
    RETURN QUERY
    WITH ask AS (
        SELECT a.place::integer AS place, a.id, a.fence, a.result, a.granted
        FROM unnest(p_ids, p_fences, p_results, p_granted) WITH ORDINALITY AS a(id, fence, result, granted, place)
    ), held AS MATERIALIZED (
        -- By id alone: with the status in it, the planner may walk the index of all running jobs instead.
        SELECT j.* FROM jobs j WHERE j.id = ANY (p_ids) ORDER BY j.id FOR UPDATE
    ), route AS MATERIALIZED (
        SELECT ask.place, ask.id, ask.result, h.*, nx.id AS next_id, nx.phase AS next_phase, nx.queue AS next_queue,
               nx.actor AS next_actor, nx.max_attempts AS next_max,
               ask.granted AND nx.pool IS NULL AND nx.throttle_count IS NULL AS granted,
               row_number() OVER (PARTITION BY nx.id ORDER BY ask.place) AS turn
        FROM ask JOIN (SELECT id AS job_id, fence AS held_fence, attempts, ready_at, next_retry_at, sent_at AS was_sent,
                              locked_at, phase, locked_by, wait_reason, workflow, priority
                       FROM held WHERE status = 'running') h ON h.job_id = ask.id AND h.held_fence = ask.fence
             JOIN phases ph ON ph.workflow = h.workflow AND ph.phase = h.phase
             LEFT JOIN phases nx ON nx.id = ph.next_id
    ), gate AS MATERIALIZED (
        SELECT n.id, n.behind, CASE WHEN n.behind OR n.throttle_count IS NOT NULL THEN 0 ELSE pipeline_room(n.nx) END AS room
        FROM (SELECT nx, nx.id, nx.throttle_count, EXISTS (
                  SELECT 1 FROM outbox o WHERE o.phase_id = nx.id AND o.sent_at IS NULL AND o.due_at IS NULL) AS behind
              FROM phases nx WHERE nx.id IN (SELECT next_id FROM route WHERE granted IS NOT TRUE) OFFSET 0) n
    ), moved AS (
        UPDATE jobs j
        SET status = CASE WHEN r.next_id IS NULL THEN 'succeeded' ELSE 'pending' END,
            phase = coalesce(r.next_phase, j.phase), max_attempts = coalesce(r.next_max, j.max_attempts),
            send = j.send + 1,
            attempts = CASE WHEN r.next_id IS NULL THEN j.attempts ELSE 0 END,
            crashes = CASE WHEN r.next_id IS NULL THEN j.crashes ELSE 0 END,
            result = CASE WHEN r.result IS NULL THEN j.result
                          ELSE coalesce(j.result, '{}') || jsonb_build_object(j.phase, r.result) END,
            completed_at = CASE WHEN r.next_id IS NULL THEN now() END,
            ready_at = now(), updated_at = now(), locked_by = NULL, locked_at = NULL, heartbeat_at = NULL,
            sent_at = NULL, delivery = NULL, slot = NULL, isolated = NULL, next_retry_at = NULL, wait_reason = NULL,
            progress_done = NULL, progress_total = NULL, error_message = NULL,
            -- The lane is the first phase's outside system.
            lane = CASE WHEN r.next_id IS NULL THEN j.lane END
        FROM route r WHERE j.id = r.id RETURNING j.id, j.send, r.place
    ), history AS (
        INSERT INTO attempts (job_id, fence, attempt, ready_at, due_at, sent_at, started_at, finished_at,
                              phase, outcome, worker, wait_reason)
        SELECT r.id, r.held_fence, r.attempts + 1, r.ready_at, r.next_retry_at, r.was_sent, r.locked_at, now(),
               r.phase, 'succeeded', r.locked_by, r.wait_reason
        FROM route r
    ), handed AS (
        INSERT INTO outbox (job_id, phase_id, priority, sent_at, sent_by)
        SELECT r.id, r.next_id, r.priority, CASE WHEN r.granted OR r.turn <= g.room THEN now() END,
               CASE WHEN r.granted OR r.turn <= g.room THEN p_worker END
        FROM route r LEFT JOIN gate g ON g.id = r.next_id WHERE r.next_id IS NOT NULL ORDER BY r.place
        RETURNING job_id, sent_at
    ), told AS (
        -- The relay looks again by itself while jobs wait; only the first to wait must wake it.
        SELECT pg_notify('pipeline_relay', '') FROM (
            SELECT 1 FROM route r JOIN gate g ON g.id = r.next_id
            WHERE r.granted IS NOT TRUE AND r.turn > g.room AND NOT g.behind LIMIT 1) w
    )
    SELECT ask.place,
           CASE WHEN m.id IS NOT NULL AND r.next_id IS NULL THEN 'done'
                WHEN m.id IS NOT NULL THEN 'handed_over'
                WHEN pipeline_outcome(ask.id, ask.fence) = 'succeeded' THEN 'repeated'
                ELSE 'lost' END,
           r.next_queue, r.next_actor, m.send, r.next_max, h.sent_at
    FROM ask LEFT JOIN moved m ON m.place = ask.place LEFT JOIN route r ON r.place = ask.place
         LEFT JOIN handed h ON h.job_id = ask.id AND m.id IS NOT NULL
         LEFT JOIN told ON true
    ORDER BY ask.place;
    PERFORM pipeline_count_children(p_ids);
    -- A processor that is free now, and jobs that wait before a phase with a pool, may need the relay.
    SELECT array_agg(ph.queue) INTO v_queues FROM phases ph
    WHERE ph.pool IS NOT NULL AND ph.workflow IN (SELECT j.workflow FROM jobs j WHERE j.id = ANY (p_ids));
    IF v_queues IS NOT NULL THEN
        PERFORM pipeline_nudge(v_queues);
    END IF;
END $$;
