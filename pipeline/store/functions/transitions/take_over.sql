-- A message met its job running under a holder that is dead (its lock is free) or stale. The same message
-- continues under a new fence; the crash counts unless the attempt ran isolated, where only its own death does.
-- A worker that finds itself named as the holder of a job it does not run (the answer to its own take-over was lost)
-- takes it over from itself, at no cost.
-- A job that had continued with a later phase ('continued') cannot run here, in the queue of an earlier one: it goes back
-- to waiting, and the message has done its part. 'locked': another transaction holds the row; ask again.
CREATE OR REPLACE FUNCTION pipeline.take_over(p_worker text, p_id uuid, p_send bigint, p_holder text, p_fence bigint,
                                              p_delivery bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_job pipeline.jobs;
    v_phase pipeline.phases;
    v_crashes integer;
    v_verdict text;
    -- A worker that stopped in order and could not settle everything left its jobs at no cost.
    v_left boolean := coalesce((SELECT w.leaving FROM pipeline.workers w WHERE w.id = p_holder), false);
BEGIN
    SELECT * INTO v_job FROM pipeline.jobs
    WHERE id = p_id AND status = 'running' AND send = p_send AND locked_by = p_holder AND fence = p_fence
    FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT 1 FROM pipeline.jobs WHERE id = p_id AND status = 'running' AND send = p_send
                                 AND locked_by = p_holder AND fence = p_fence) THEN 'locked' ELSE 'changed' END;
    END IF;
    SELECT * INTO v_phase FROM pipeline.phases WHERE workflow = v_job.workflow AND phase = v_job.phase;
    IF p_holder <> p_worker AND pipeline.alive(p_holder) AND v_job.heartbeat_at > now() - v_phase.stale_after THEN RETURN 'held'; END IF;
    IF v_job.message_phase_id IS NOT NULL THEN
        v_verdict := pipeline.crash(p_id, p_fence, 'crashed', format('worker %s died while it ran this job', p_holder),
                                    p_holder <> p_worker AND NOT v_left);
        RETURN CASE v_verdict WHEN 'crashed' THEN 'continued' ELSE v_verdict END;
    END IF;
    v_crashes := v_job.crashes + CASE WHEN v_job.isolated OR p_holder = p_worker OR v_left THEN 0 ELSE 1 END;
    IF v_crashes >= v_phase.max_crashes THEN
        PERFORM pipeline.record_attempt(v_job, 'poisoned', format('worker %s died while it ran this job', p_holder));
        PERFORM pipeline.end_failed(v_job, v_crashes, v_job.attempts,
            format('poison pill: %s workers died while they ran this job, the last was %s', v_crashes, p_holder));
        RETURN 'poisoned';
    END IF;
    PERFORM pipeline.record_attempt(v_job, CASE WHEN v_left THEN 'released' ELSE 'crashed' END,
        format('worker %s %s', p_holder, CASE WHEN v_left THEN 'stopped before it could settle this job'
                                              ELSE 'died while it ran this job' END));
    UPDATE pipeline.jobs SET fence = pipeline.next_fence(fence, pipeline.epoch()), crashes = v_crashes, locked_by = p_worker, locked_at = now(),
        heartbeat_at = now(), ready_at = now(), sent_at = now(), next_retry_at = NULL, wait_reason = NULL,
        updated_at = now(), delivery = p_delivery, isolated = v_phase.isolated OR v_crashes > 0
    WHERE id = p_id;
    RETURN 'claimed';
END $$;
