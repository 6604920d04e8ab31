-- The phase succeeded. The job ends, or the worker carries it into the next phase under a new fence, with the same message
-- in hand, or it waits at the gate of the next phase. History and transition are one statement; each row needs its fence.
-- p_continue: the queue in which the worker can continue with the job. It does so unless an older job or one of a higher
-- priority waits at that gate, the phase is paused, throttled or of another kind, its pool is full, or one failure could
-- end the job there: its message would be dead-lettered in the wrong queue.
-- p_next: what comes after the phase, where that is not the next one at once (pipeline.next_phase).
-- Verdicts: 'done', 'continued', 'handed_over', 'lost', 'repeated' when this very attempt had committed before, or
-- 'locked' when another transaction holds the row: nothing was done for it, ask again.
CREATE OR REPLACE FUNCTION pipeline.complete(
    p_worker integer, p_ids uuid[], p_fences bigint[], p_results jsonb[], p_continue text[], p_next jsonb[] DEFAULT NULL)
RETURNS TABLE (place integer, verdict text, fence bigint, send bigint, max_attempts integer, isolated boolean, at timestamptz, rate_limit text)
-- The settings: a session that carries users' writes as well plans like any other.
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_epoch bigint := pipeline.epoch();
    v_answered integer[];
    v_phase integer;
    v_left integer[];
    v_leave uuid[];
    v_ended uuid[];
    v_turns uuid[];
    v_done uuid[];
    v_waits boolean := false;
    v_child boolean;
    v_pooled boolean;
    v_awaited boolean;
    v_turns_id integer;
    v_key text;
    v_of_turns integer[];
    v_keys text[];
    v_turned boolean;
    v_id uuid;
BEGIN
    FOR place, verdict, fence, send, max_attempts, isolated, at, rate_limit, v_id, v_phase, v_child, v_pooled, v_awaited, v_turns_id, v_key, v_turned IN
        WITH held AS MATERIALIZED (
            SELECT j.id, j.fence, j.locked_by, j.workflow, j.phase, j.priority, j.batch_id, j.attempts, j.ready_at,
                   j.next_retry_at, j.sent_at, j.locked_at, j.wait_reason
            FROM pipeline.jobs j WHERE j.id = ANY (p_ids) FOR NO KEY UPDATE SKIP LOCKED
        ), step AS MATERIALIZED (
            SELECT a.place::integer, h.*, a.result, ph.id AS phase_id, ph.pool IS NOT NULL AS pooled,
                   nx.id AS next_id, nx.phase AS next_phase, nx.isolated AS next_isolated, nx.max_attempts,
                   l.name AS rate_limit, a.next, CASE WHEN a.next IS NOT NULL THEN pipeline.due_after(a.next) END AS due,
                   CASE WHEN nx.queue = a.continuing AND nx.isolated = ph.isolated AND nx.throttle_count IS NULL
                             AND (nx.rate_limit IS NULL OR pipeline.limit_is_free(l.name, nx.id))
                             AND nx.max_attempts > 1 AND nx.max_crashes > 1 AND (nx.paused_until > now()) IS NOT TRUE
                             AND pipeline.is_first(nx.id, h.priority, h.id)
                        THEN nx.pool IS NULL OR pipeline.take_place(nx.id, nx.pool, h.id)
                        ELSE false END AS continues
            FROM unnest(p_ids, p_fences, p_results, p_continue, p_next) WITH ORDINALITY AS a(id, fence, result, continuing, next, place)
                 -- Only a running job has a holder.
                 JOIN held h ON h.id = a.id AND h.fence = a.fence AND h.locked_by IS NOT NULL
                 JOIN pipeline.phases ph ON ph.workflow = h.workflow AND ph.phase = h.phase
                 LEFT JOIN pipeline.phases nx ON nx.id = CASE WHEN a.next IS NULL THEN ph.next_id ELSE pipeline.next_phase(ph, a.next, h.fence) END
                 CROSS JOIN LATERAL (SELECT CASE WHEN nx.rate_limit IS NOT NULL THEN (
                     SELECT pipeline.limit_name(nx.rate_limit, j.body) FROM pipeline.jobs j WHERE j.id = h.id) END AS name) l
        ), moved AS (
            UPDATE pipeline.jobs j
            SET status = CASE WHEN s.next_id IS NULL THEN 'succeeded' WHEN s.continues THEN 'running' ELSE 'pending' END,
                phase = coalesce(s.next_phase, j.phase), max_attempts = coalesce(s.max_attempts, j.max_attempts),
                fence = CASE WHEN s.continues THEN pipeline.next_fence(j.fence, v_epoch) ELSE j.fence END,
                send = CASE WHEN s.continues THEN j.send ELSE j.send + 1 END,
                message_phase_id = CASE WHEN s.continues THEN coalesce(j.message_phase_id, s.phase_id) END,
                attempts = CASE WHEN s.next_id IS NULL THEN j.attempts ELSE 0 END,
                crashes = CASE WHEN s.next_id IS NULL THEN j.crashes ELSE 0 END,
                result = CASE WHEN s.result IS NULL THEN j.result
                              ELSE coalesce(j.result, '{}') || jsonb_build_object(j.phase, s.result) END,
                completed_at = CASE WHEN s.next_id IS NULL THEN now() END,
                ready_at = now(), updated_at = now(), locked_at = now(), heartbeat_at = now(), sent_at = now(),
                isolated = s.next_isolated, waits = 0, next_retry_at = CASE WHEN s.due < 'infinity' THEN s.due END,
                wait_reason = CASE WHEN s.due IS NOT NULL THEN coalesce(split_part(pipeline.next_wait(s.next), ':', 1), 'after') END,
                progress_done = NULL, progress_total = NULL, error_message = NULL,
                rate_limit = CASE WHEN s.next_id IS NULL THEN j.rate_limit ELSE s.rate_limit END
            FROM step s WHERE j.id = s.id
            RETURNING s.place, j.id, j.fence, j.send
        ), history AS (
            INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, due_at, sent_at, started_at, finished_at,
                                  phase, outcome, worker_no, wait_reason)
            SELECT s.id, s.fence, s.attempts + 1, s.ready_at, s.next_retry_at, s.sent_at, s.locked_at, now(),
                   s.phase, 'succeeded', p_worker, s.wait_reason
            FROM step s
        ), waits AS (
            UPDATE pipeline.outbox o
            SET phase_id = s.next_id, seq = DEFAULT, sent_at = NULL, sent_by = NULL,
                -- Whoever waits for somebody, or for a turn, comes to the rate limit after that.
                rate_limit = CASE WHEN s.due IS NULL OR (o.turns_id IS NULL AND pipeline.next_wait(s.next) IS NULL) THEN s.rate_limit END,
                has_turn = CASE WHEN o.turns_id IS NOT NULL THEN s.due IS NULL END,
                due_at = coalesce(s.due, CASE WHEN pipeline.waits_at_limit(s.rate_limit, s.next_id) THEN 'infinity'::timestamptz END),
                waits_for = CASE WHEN s.due IS NOT NULL THEN pipeline.next_wait(s.next) END,
                reason = CASE WHEN s.due IS NOT NULL THEN coalesce(split_part(pipeline.next_wait(s.next), ':', 1), 'after') END
            FROM step s WHERE o.job_id = s.id AND s.next_id IS NOT NULL AND NOT s.continues
        ), ended AS (
            DELETE FROM pipeline.outbox o USING step s WHERE o.job_id = s.id AND s.next_id IS NULL
            RETURNING o.job_id, o.awaited, o.turns_id, o.key
        )
        SELECT s.place, CASE WHEN s.next_id IS NULL THEN 'done' WHEN s.continues THEN 'continued' ELSE 'handed_over' END,
               m.fence, m.send, s.max_attempts, s.next_isolated, now(), s.rate_limit, s.id, s.phase_id, s.next_id IS NULL AND s.batch_id IS NOT NULL, s.pooled, e.awaited, e.turns_id, e.key,
               s.next IS NOT NULL AND s.next_id IS NOT NULL
        FROM step s JOIN moved m ON m.place = s.place LEFT JOIN ended e ON e.job_id = s.id
    LOOP
        v_answered := v_answered || place;
        v_waits := v_waits OR verdict = 'handed_over';
        IF v_turns_id IS NOT NULL THEN
            v_of_turns := v_of_turns || v_turns_id;
            v_keys := v_keys || v_key;
        END IF;
        IF verdict = 'done' THEN v_done := v_done || v_id; END IF;
        IF v_child THEN v_ended := v_ended || v_id; END IF;
        -- As pipeline.leave_outbox.
        IF v_awaited THEN PERFORM pg_notify('pipeline_ended', v_id::text); END IF;
        IF v_turned THEN v_turns := v_turns || v_id; END IF;
        IF v_pooled THEN
            v_left := v_left || v_phase;
            v_leave := v_leave || v_id;
        END IF;
        RETURN NEXT;
    END LOOP;
    IF v_turns IS NOT NULL THEN
        PERFORM pipeline.begin_waiting(v_turns);
    END IF;
    IF v_left IS NOT NULL THEN
        PERFORM pipeline.leave_place(v_left, v_leave);
    END IF;
    IF v_ended IS NOT NULL THEN
        PERFORM pipeline.count_children(v_ended);
    END IF;
    IF v_done IS NOT NULL THEN
        PERFORM pipeline.submit_hooks(v_done, 'succeeded');
    END IF;
    IF v_waits OR v_left IS NOT NULL OR (v_of_turns IS NOT NULL AND pipeline.may_have_turns(v_of_turns, v_keys)) THEN
        PERFORM pipeline.wake();
    END IF;
    IF coalesce(cardinality(v_answered), 0) < cardinality(p_ids) THEN
        RETURN QUERY SELECT * FROM pipeline.not_completed(p_worker, p_ids, p_fences, coalesce(v_answered, '{}'));
    END IF;
END $$;

-- Why nothing was done for these: somebody holds the row, the attempt lost its job, or it had committed before and only
-- the answer was lost. If the job continued then, this worker still has it, under the fence that it was given.
CREATE OR REPLACE FUNCTION pipeline.not_completed(p_worker integer, p_ids uuid[], p_fences bigint[], p_but integer[])
RETURNS TABLE (place integer, verdict text, fence bigint, send bigint, max_attempts integer, isolated boolean, at timestamptz, rate_limit text)
LANGUAGE sql AS $$
    SELECT a.place::integer, CASE WHEN c.fence IS NOT NULL THEN 'continued'
               ELSE CASE pipeline.not_held(a.id, a.fence) WHEN 'succeeded' THEN 'repeated' WHEN 'locked' THEN 'locked' ELSE 'lost' END END,
           c.fence, c.send, c.max_attempts, c.isolated, c.sent_at, c.rate_limit
    FROM unnest(p_ids, p_fences) WITH ORDINALITY AS a(id, fence, place)
         LEFT JOIN LATERAL (
             SELECT j.fence, j.send, j.max_attempts, j.isolated, j.sent_at, j.rate_limit
             FROM pipeline.attempts t JOIN pipeline.jobs j ON j.id = t.job_id AND pipeline.follows(j.fence, t.fence)
             WHERE t.job_id = a.id AND t.fence = a.fence AND t.outcome = 'succeeded'
               AND j.message_phase_id IS NOT NULL AND t.worker_no = p_worker AND j.locked_at = t.finished_at) c ON true
    WHERE a.place <> ALL (p_but)
$$;
