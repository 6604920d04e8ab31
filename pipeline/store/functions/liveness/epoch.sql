-- Fences across a failover that lost the last commits: those that the new primary gives out must not be those that the
-- old one gave to attempts which still run. A fence is an epoch and a count: the count goes up by one with each claim,
-- the epoch is another one on each server that took over (pipeline.epochs). Until a worker has noted that a server
-- took over, nothing can be claimed or completed there.

-- PostgreSQL counts it up when a standby is promoted and when a backup is restored to a moment. 0: a service that does not
-- say it. On a standby: what every write is told there.
CREATE OR REPLACE FUNCTION pipeline.server_timeline() RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer;
EXCEPTION
    WHEN feature_not_supported OR insufficient_privilege THEN RETURN 0;
    WHEN object_not_in_prerequisite_state THEN
        RAISE EXCEPTION 'this server is a standby' USING ERRCODE = 'read_only_sql_transaction';
END $$;

-- The epoch of this server. An outage, for the caller to try again, until a worker has noted that the server took over.
CREATE OR REPLACE FUNCTION pipeline.epoch() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_last pipeline.epochs;
BEGIN
    SELECT * INTO v_last FROM pipeline.epochs ORDER BY epoch DESC LIMIT 1;
    IF v_last.timeline IS DISTINCT FROM pipeline.server_timeline() THEN
        RAISE EXCEPTION 'this server has just taken over from another, and no worker has noted it yet' USING ERRCODE = 'cannot_connect_now';
    END IF;
    RETURN v_last.epoch;
END $$;

-- Note that this server took over, if it did. The epoch is the moment, to eight seconds so that a fence is exact
-- as a number in JavaScript: of two servers that took over from the same primary, each has its own.
CREATE OR REPLACE FUNCTION pipeline.note_epoch() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_last pipeline.epochs;
    v_timeline integer := pipeline.server_timeline();
BEGIN
    SELECT * INTO v_last FROM pipeline.epochs ORDER BY epoch DESC LIMIT 1;
    IF v_last.timeline = v_timeline THEN RETURN false; END IF;
    INSERT INTO pipeline.epochs (epoch, timeline)
    VALUES (greatest(coalesce(v_last.epoch, 0) + 1, (extract(epoch FROM clock_timestamp() - '2026-01-01 UTC') / 8)::bigint), v_timeline)
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

-- For how long this server has taken writes: since its start, or since it took over.
CREATE OR REPLACE FUNCTION pipeline.primary_for() RETURNS interval LANGUAGE sql VOLATILE AS $$
    SELECT now() - greatest(pg_postmaster_start_time(), (SELECT max(e.began_at) FROM pipeline.epochs e))
$$;

-- The next fence of a job. 24 bits are the count.
CREATE OR REPLACE FUNCTION pipeline.next_fence(p_fence bigint, p_epoch bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT (greatest(p_epoch, p_fence >> 24) << 24) + (p_fence & 16777215) + 1
$$;

-- How many claims of its job a fence was given after, itself included.
CREATE OR REPLACE FUNCTION pipeline.claims(p_fence bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT p_fence & 16777215
$$;

-- Whether a fence was the next after another.
CREATE OR REPLACE FUNCTION pipeline.follows(p_fence bigint, p_before bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT p_fence > p_before AND (p_fence & 16777215) = (p_before & 16777215) + 1
$$;
