-- How the keys of a workflow take turns; a row for each workflow that has keys, or had.
CREATE TABLE pipeline.turns (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow     text NOT NULL UNIQUE,
    -- Where a job's key is in its body ('customer', 'customer.id'); null: new jobs have no key any more.
    field        text,
    -- So many jobs of a key are under way at once (null: any number); in_order: one, the oldest that has not ended.
    per_key      integer,
    in_order     boolean NOT NULL DEFAULT false,
    -- So many jobs of a key begin in so many seconds.
    rate_count   integer,
    rate_seconds double precision,
    -- Who had a turn last; and where the look began that has not asked every key yet.
    last_key     text NOT NULL DEFAULT '',
    round_from   text,
    CONSTRAINT somebody_may_go CHECK (per_key > 0),
    CONSTRAINT rate_is_a_pair CHECK ((rate_count IS NULL) = (rate_seconds IS NULL)),
    CONSTRAINT rate_is_above_zero CHECK (rate_count > 0 AND rate_seconds > 0)
);

-- What operators say of a single key; most have no row.
CREATE TABLE pipeline.key_turns (
    turns_id     integer NOT NULL,
    key          text NOT NULL,
    -- So many jobs go in one turn.
    weight       integer NOT NULL DEFAULT 1,
    -- Until then its jobs wait ('infinity': until somebody resumes it).
    paused_until timestamptz,
    CONSTRAINT key_turns_pkey PRIMARY KEY (turns_id, key),
    CONSTRAINT weight_in_range CHECK (weight BETWEEN 1 AND 1000)
);

-- When the next job of a key may begin, where jobs of a key have a rate. Only the relay writes here, so that it never waits
-- for an application.
CREATE TABLE pipeline.key_rates (
    turns_id integer NOT NULL,
    key      text NOT NULL,
    next_at  timestamptz NOT NULL,
    CONSTRAINT key_rates_pkey PRIMARY KEY (turns_id, key)
) WITH (fillfactor = 50);

ALTER TABLE pipeline.phases ADD COLUMN turns_id integer REFERENCES pipeline.turns (id);

-- A job with a key has its turn from the moment in which the gate gives it one until it waits for something else, or ends.
ALTER TABLE pipeline.outbox ADD COLUMN turns_id integer, ADD COLUMN key text, ADD COLUMN has_turn boolean,
    ADD CONSTRAINT turns_are_of_keys CHECK ((turns_id IS NULL) = (key IS NULL) AND (turns_id IS NULL) = (has_turn IS NULL)),
    ADD CONSTRAINT at_the_gate_only_in_turn CHECK (due_at IS NOT NULL OR has_turn IS NOT FALSE);
-- Who waits for a turn, by key in the order in which they go; who has one; the oldest of a key.
CREATE INDEX outbox_turn_waited_for ON pipeline.outbox (turns_id, phase_id, key, priority DESC, seq)
    WHERE has_turn IS FALSE AND due_at = 'infinity' AND waits_for IS NULL;
CREATE INDEX outbox_has_turn ON pipeline.outbox (turns_id, key, phase_id) WHERE has_turn;
CREATE INDEX outbox_of_key ON pipeline.outbox (turns_id, key, job_id) WHERE turns_id IS NOT NULL;
