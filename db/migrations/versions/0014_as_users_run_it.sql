-- What living workers know and PostgreSQL must be told: messages that they hold and have not started, by queue, and
-- threads that are stuck in a call which nothing can interrupt.
ALTER TABLE workers ADD COLUMN unstarted jsonb NOT NULL DEFAULT '{}', ADD COLUMN stuck integer NOT NULL DEFAULT 0,
    -- It stopped in order and could not settle everything: what it left is not charged with a crash.
    ADD COLUMN leaving boolean NOT NULL DEFAULT false;

-- Waits in a row that somebody outside asked for, without any progress in between.
ALTER TABLE jobs ADD COLUMN waits integer NOT NULL DEFAULT 0;

-- Children of a batch that reached a final state and are not in the batch's own counts yet. Rows are only added and
-- removed, so that no child ever waits for the row of its batch, which an application may hold.
CREATE TABLE batch_ends (
    batch_id uuid NOT NULL,
    ended    integer NOT NULL,
    failed   integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX batch_ends_of_batch ON batch_ends (batch_id);

-- Sending has a leader (relay_seat), and so has maintenance: it needs PostgreSQL alone.
CREATE VIEW maintenance_leader AS SELECT NULL::integer AS leader;

-- Messages of a rate limit that are in the broker.
CREATE INDEX outbox_lane_sent ON outbox (lane) WHERE lane IS NOT NULL AND sent_at IS NOT NULL;

-- Who waits for a rate limit, in the order in which they go (due_at = 'infinity'), and who has been let through by it
-- and waits for room (due_at is null): each found without reading the others.
DROP INDEX outbox_lane;
CREATE INDEX outbox_lane ON outbox (lane, due_at, phase_id, priority DESC, seq) WHERE lane IS NOT NULL AND sent_at IS NULL;
-- The end of what a rate limit has promised.
CREATE INDEX turns_of_lane ON turns (lane, at);
