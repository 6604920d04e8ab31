-- The engine's tables. Columns of jobs that never change stand first: PostgreSQL's WAL then holds only
-- the changed tail of a row. No foreign keys on the hot tables: their checks would lock and dirty the
-- parent row at every hand-over; pruning and deletion remove children explicitly.

CREATE FUNCTION pipeline_new_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    -- Time-ordered (UUID version 7): new rows land side by side in the index, and id order is age order.
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
        FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
$$;

CREATE TABLE phases (
    id               integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow         text NOT NULL,
    phase            text NOT NULL,
    position         integer NOT NULL,
    next_id          integer REFERENCES phases (id),
    queue            text NOT NULL UNIQUE,
    actor            text NOT NULL,
    pool             integer CHECK (pool > 0),
    queue_limit      integer NOT NULL CHECK (queue_limit > 0),
    max_attempts     integer NOT NULL CHECK (max_attempts > 0),
    max_crashes      integer NOT NULL CHECK (max_crashes > 0),
    stale_after      interval NOT NULL,
    isolated         boolean NOT NULL DEFAULT false,
    throttle_count   integer CHECK (throttle_count > 0),
    throttle_seconds double precision CHECK (throttle_seconds > 0),
    throttle_from    timestamptz,
    throttle_used    integer NOT NULL DEFAULT 0,
    paused_until     timestamptz,
    UNIQUE (workflow, phase),
    CONSTRAINT throttle_is_a_pair CHECK ((throttle_count IS NULL) = (throttle_seconds IS NULL))
);

CREATE TABLE batches (
    id                uuid PRIMARY KEY DEFAULT pipeline_new_id(),
    total             integer NOT NULL DEFAULT 0,
    remaining         integer NOT NULL DEFAULT 0,
    failed            integer NOT NULL DEFAULT 0,
    sealed            boolean NOT NULL DEFAULT false,
    callback_workflow text,
    callback_body     jsonb,
    callback_job      uuid,
    created_at        timestamptz NOT NULL DEFAULT now(),
    completed_at      timestamptz,
    CONSTRAINT counts_are_sane CHECK (remaining BETWEEN 0 AND total),
    CONSTRAINT complete_only_when_sealed_and_empty CHECK (completed_at IS NULL OR (sealed AND remaining = 0))
);

CREATE TABLE jobs (
    id              uuid NOT NULL DEFAULT pipeline_new_id(),
    created_at      timestamptz NOT NULL DEFAULT now(),
    workflow        text NOT NULL,
    trace_id        text NOT NULL,
    span_id         text NOT NULL,
    batch_id        uuid,
    idempotency_key text,
    priority        smallint NOT NULL DEFAULT 0,
    body            jsonb NOT NULL,
    phase           text NOT NULL,
    status          text NOT NULL DEFAULT 'pending',
    attempts        integer NOT NULL DEFAULT 0,
    max_attempts    integer NOT NULL,
    crashes         integer NOT NULL DEFAULT 0,
    fence           bigint NOT NULL DEFAULT 0,
    send            bigint NOT NULL DEFAULT 1,
    ready_at        timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    next_retry_at   timestamptz,
    sent_at         timestamptz,
    locked_at       timestamptz,
    heartbeat_at    timestamptz,
    completed_at    timestamptz,
    delivery        bigint,
    slot            integer,
    isolated        boolean,
    counted         boolean,
    progress_done   integer,
    progress_total  integer,
    locked_by       text,
    wait_reason     text,
    error_message   text,
    result          jsonb,
    CONSTRAINT jobs_pkey PRIMARY KEY (id),
    CONSTRAINT status_is_known
        CHECK (status IN ('pending', 'running', 'retryable', 'succeeded', 'failed', 'cancelled')),
    CONSTRAINT lease_only_while_running
        CHECK ((status = 'running') = (locked_by IS NOT NULL)
               AND (locked_by IS NULL) = (locked_at IS NULL) AND (locked_by IS NULL) = (heartbeat_at IS NULL)),
    CONSTRAINT processor_only_while_running CHECK (slot IS NULL OR status = 'running'),
    CONSTRAINT completed_when_final
        CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (completed_at IS NOT NULL)),
    CONSTRAINT retryable_has_a_time CHECK (status <> 'retryable' OR next_retry_at IS NOT NULL),
    CONSTRAINT priority_in_range CHECK (priority BETWEEN 0 AND 9),
    CONSTRAINT budgets_are_counts CHECK (attempts >= 0 AND crashes >= 0 AND max_attempts > 0),
    CONSTRAINT body_is_an_object CHECK (jsonb_typeof(body) = 'object')
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);

CREATE UNIQUE INDEX jobs_processor ON jobs (workflow, phase, slot) WHERE slot IS NOT NULL;
CREATE INDEX jobs_running ON jobs (id) WHERE status = 'running';
CREATE INDEX jobs_failed ON jobs (workflow, phase, id) WHERE status = 'failed';
CREATE INDEX jobs_of_batch ON jobs (batch_id) WHERE batch_id IS NOT NULL;
CREATE UNIQUE INDEX jobs_idempotency ON jobs (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- A row is a job that waits to be claimed: due_at set = waits for its time; unsent = waits at the gate;
-- sent_at set = its message is in the broker (or on its way, by sent_by). The claim removes the row.
CREATE TABLE outbox (
    job_id   uuid NOT NULL,
    seq      bigint GENERATED ALWAYS AS IDENTITY,
    phase_id integer NOT NULL,
    priority smallint NOT NULL,
    reserved boolean NOT NULL DEFAULT false,
    due_at   timestamptz,
    sent_at  timestamptz,
    sent_by  integer,
    reason   text,
    CONSTRAINT outbox_pkey PRIMARY KEY (job_id),
    CONSTRAINT sent_only_when_due CHECK (sent_at IS NULL OR due_at IS NULL)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);

CREATE INDEX outbox_waiting ON outbox (phase_id, priority DESC, seq) WHERE sent_at IS NULL AND due_at IS NULL;
CREATE INDEX outbox_due ON outbox (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_sent ON outbox (phase_id) WHERE sent_at IS NOT NULL;

-- One row an attempt, written when it ends. ready → due → sent → started → finished are its moments;
-- the next attempt's ready_at is this one's finished_at, so that the parts add up to the job's age.
CREATE TABLE attempts (
    job_id      uuid NOT NULL,
    fence       bigint NOT NULL,
    attempt     integer NOT NULL,
    ready_at    timestamptz NOT NULL,
    due_at      timestamptz,
    sent_at     timestamptz,
    started_at  timestamptz,
    finished_at timestamptz NOT NULL,
    phase       text NOT NULL,
    outcome     text NOT NULL,
    worker      text,
    wait_reason text,
    error       text,
    CONSTRAINT attempts_pkey PRIMARY KEY (job_id, fence),
    CONSTRAINT outcome_is_known CHECK (outcome IN ('succeeded', 'retried', 'exhausted', 'failed', 'parked',
        'handed_back', 'crashed', 'stale', 'poisoned', 'cancelled', 'undeliverable'))
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);

CREATE TABLE workers (
    no            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            text NOT NULL UNIQUE,
    host          text NOT NULL,
    pid           integer NOT NULL,
    threads       integer NOT NULL,
    queues        text[] NOT NULL,
    started_at    timestamptz NOT NULL DEFAULT now(),
    heartbeat_at  timestamptz NOT NULL DEFAULT now(),
    confirmed_at  timestamptz NOT NULL DEFAULT now(),
    missing_since timestamptz,
    stopped_at    timestamptz,
    counters      jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX workers_living ON workers (no) WHERE stopped_at IS NULL;
