-- How many hand-overs a worker may send on its own before it asks again: its share of the room of each queue
-- without a pool, and none while jobs wait at that gate, so that it does not overtake them.
CREATE OR REPLACE FUNCTION pipeline.send_credits(p_queues text[]) RETURNS TABLE (queue text, hand_overs integer)
LANGUAGE sql STABLE AS $$
    SELECT ph.queue, CASE WHEN pipeline.has_waiting(ph.id) THEN 0
           ELSE pipeline.capacity(ph) / greatest(1, (SELECT count(*) FROM pipeline.workers WHERE stopped_at IS NULL)::integer) END
    FROM pipeline.phases ph WHERE ph.queue = ANY (p_queues) AND ph.pool IS NULL AND ph.throttle_count IS NULL
$$;
