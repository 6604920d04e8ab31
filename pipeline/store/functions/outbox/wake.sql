-- Wake the relay, if it sleeps: a NOTIFY makes commits wait for one another, and a relay that is awake looks again anyway.
-- The relay writes this down before its last look (pipeline.admit). Whoever read 'awake' just before that and commits later
-- is found all the same: the relay keeps looking until every transaction that was open then has ended.
CREATE OR REPLACE FUNCTION pipeline.wake() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT last_value FROM pipeline.relay_asleep) = 1 THEN
        PERFORM pg_notify('pipeline_relay', '');
    END IF;
END $$;

-- How many transactions with a lower number are still open, in any database of the server. A snapshot lists those up to the
-- last one that is over; all that were begun after that one are open.
CREATE OR REPLACE FUNCTION pipeline.open_before(p_horizon bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_now pg_snapshot := pg_current_snapshot();
BEGIN
    RETURN (SELECT count(*) FROM pg_snapshot_xip(v_now) AS x WHERE x < p_horizon::text::xid8)
        + greatest(p_horizon - pg_snapshot_xmax(v_now)::text::bigint, 0);
END $$;
