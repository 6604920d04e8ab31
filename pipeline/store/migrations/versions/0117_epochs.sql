-- A server that takes writes, by its timeline, and since when; the highest epoch is the one in force. Fences that were
-- given out so far are of epoch 0 (see pipeline.epoch). A timeline of 0: a service that does not say it.
CREATE TABLE pipeline.epochs (
    epoch bigint CONSTRAINT epochs_pkey PRIMARY KEY CONSTRAINT epoch_not_negative CHECK (epoch >= 0),
    timeline integer NOT NULL,
    began_at timestamptz NOT NULL DEFAULT now()
);
-- The server's start counts instead: this one has not taken over from another.
DO $$
BEGIN
    INSERT INTO pipeline.epochs VALUES (0, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer, '-infinity');
EXCEPTION WHEN feature_not_supported OR insufficient_privilege THEN
    INSERT INTO pipeline.epochs VALUES (0, 0, '-infinity');
END $$;
