-- The dispatch throttle: each waiting job of a throttled phase gets its place in time once, so that ten
-- thousand of them wake when it is their turn and not every second. Nobody is waited for: a job that another
-- transaction holds gets its place later, and so do all of a phase whose own row is held (by another relay, as a rule).
CREATE OR REPLACE FUNCTION pipeline.reserve() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_phase pipeline.phases;
    v_step interval;
    v_from timestamptz;
    v_used integer;
    v_new integer;
BEGIN
    FOR v_phase IN SELECT * FROM pipeline.phases WHERE id = ANY (ARRAY(
                       SELECT w.id FROM pipeline.phases_waited_for() w WHERE w.throttle_count IS NOT NULL))
                   ORDER BY id FOR NO KEY UPDATE SKIP LOCKED LOOP
        v_step := make_interval(secs => v_phase.throttle_seconds);
        v_from := coalesce(v_phase.throttle_from, '-infinity');
        v_used := v_phase.throttle_used;
        IF v_from = '-infinity' OR v_from + v_step * ceil(greatest(v_used, 1)::numeric / v_phase.throttle_count)::double precision <= now() THEN
            v_from := now();
            v_used := 0;
        END IF;
        WITH waiting AS (
            SELECT free.job_id, row_number() OVER (ORDER BY free.priority DESC, free.seq) - 1 + v_used AS place
            FROM (SELECT o.job_id, o.priority, o.seq FROM pipeline.outbox o
                  WHERE o.phase_id = v_phase.id AND o.sent_at IS NULL AND o.due_at IS NULL AND NOT o.reserved
                  FOR UPDATE SKIP LOCKED) free
        ), placed AS (
            UPDATE pipeline.outbox o
            SET reserved = true, reason = 'throttled',
                due_at = CASE WHEN w.place >= v_phase.throttle_count
                              THEN v_from + v_step * floor(w.place::numeric / v_phase.throttle_count)::double precision END
            FROM waiting w WHERE o.job_id = w.job_id RETURNING 1
        )
        SELECT count(*) INTO v_new FROM placed;
        IF v_new > 0 THEN
            UPDATE pipeline.phases SET throttle_from = v_from, throttle_used = v_used + v_new WHERE id = v_phase.id;
        END IF;
    END LOOP;
END $$;
