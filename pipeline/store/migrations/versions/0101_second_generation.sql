-- The engine's tables, all in the schema `pipeline`. Columns of jobs that never change stand first: PostgreSQL's WAL
-- then holds only the changed tail of a row. No foreign keys on the hot tables: their checks would lock and dirty the
-- parent row at every hand-over; pruning and deletion remove children explicitly.

CREATE FUNCTION pipeline.new_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    -- Time-ordered (UUID version 7): new rows land side by side in the index, and id order is age order.
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
        FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
$$;

CREATE TABLE pipeline.phases (
    id               integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow         text NOT NULL,
    phase            text NOT NULL,
    position         integer NOT NULL,
    next_id          integer REFERENCES pipeline.phases (id),
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

CREATE TABLE pipeline.batches (
    id                uuid PRIMARY KEY DEFAULT pipeline.new_id(),
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
CREATE INDEX batches_open ON pipeline.batches (id) WHERE completed_at IS NULL;

-- Children of a batch that reached a final state and are not in the batch's own counts yet. Rows are only added and
-- removed, so that no child ever waits for the row of its batch, which an application may hold.
CREATE TABLE pipeline.batch_ends (
    batch_id uuid NOT NULL,
    ended    integer NOT NULL,
    failed   integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX batch_ends_of_batch ON pipeline.batch_ends (batch_id);

-- On its way, a job touches no index: its steps are heap-only updates, which leave nothing behind for vacuum and write
-- half the WAL. So no index names a column that those steps change. The generated columns are null while a job waits
-- or runs. Running jobs are found by their row in the outbox, which stays for as long as the job lives.
CREATE TABLE pipeline.jobs (
    id               uuid NOT NULL DEFAULT pipeline.new_id(),
    created_at       timestamptz NOT NULL DEFAULT now(),
    workflow         text NOT NULL,
    trace_id         text NOT NULL,
    span_id          text NOT NULL,
    batch_id         uuid,
    idempotency_key  text,
    priority         smallint NOT NULL DEFAULT 0,
    body             jsonb NOT NULL,
    phase            text NOT NULL,
    status           text NOT NULL DEFAULT 'pending',
    attempts         integer NOT NULL DEFAULT 0,
    max_attempts     integer NOT NULL,
    crashes          integer NOT NULL DEFAULT 0,
    fence            bigint NOT NULL DEFAULT 0,
    send             bigint NOT NULL DEFAULT 1,
    ready_at         timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    next_retry_at    timestamptz,
    sent_at          timestamptz,
    locked_at        timestamptz,
    heartbeat_at     timestamptz,
    completed_at     timestamptz,
    delivery         bigint,
    slot             integer,
    isolated         boolean,
    counted          boolean,
    progress_done    integer,
    progress_total   integer,
    locked_by        text,
    wait_reason      text,
    error_message    text,
    result           jsonb,
    -- What the job shares with others outside: one rate, one pause.
    rate_limit       text,
    -- Why a job failed, as its group has it; written when it fails (pipeline.cause).
    cause            text,
    -- The phase in whose queue the message of a running job is, if the job continued to a later phase with it.
    message_phase_id integer,
    -- 'phase:status' of a job that has ended or backs off.
    rest             text GENERATED ALWAYS AS (
        CASE WHEN status NOT IN ('pending', 'running') THEN phase || ':' || status END) STORED,
    failed_in        text GENERATED ALWAYS AS (CASE WHEN status = 'failed' THEN phase END) STORED,
    -- The processor that a running job of a pool holds.
    processor        text GENERATED ALWAYS AS (
        CASE WHEN slot IS NOT NULL THEN workflow || '.' || phase || '-processor-' || slot END) STORED,
    -- Waits in a row that somebody outside asked for, without any progress in between.
    waits            integer NOT NULL DEFAULT 0,
    CONSTRAINT jobs_pkey PRIMARY KEY (id),
    CONSTRAINT status_is_known
        CHECK (status IN ('pending', 'running', 'retryable', 'succeeded', 'failed', 'cancelled')),
    CONSTRAINT lease_only_while_running
        CHECK ((status = 'running') = (locked_by IS NOT NULL)
               AND (locked_by IS NULL) = (locked_at IS NULL) AND (locked_by IS NULL) = (heartbeat_at IS NULL)),
    CONSTRAINT processor_only_while_running CHECK (slot IS NULL OR status = 'running'),
    CONSTRAINT continued_only_while_running CHECK (message_phase_id IS NULL OR status = 'running'),
    CONSTRAINT completed_when_final
        CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (completed_at IS NOT NULL)),
    CONSTRAINT retryable_has_a_time CHECK (status <> 'retryable' OR next_retry_at IS NOT NULL),
    CONSTRAINT priority_in_range CHECK (priority BETWEEN 0 AND 9),
    CONSTRAINT budgets_are_counts CHECK (attempts >= 0 AND crashes >= 0 AND max_attempts > 0),
    CONSTRAINT body_is_an_object CHECK (jsonb_typeof(body) = 'object')
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX jobs_of_batch ON pipeline.jobs (batch_id) WHERE batch_id IS NOT NULL;
CREATE UNIQUE INDEX jobs_idempotency ON pipeline.jobs (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_resting ON pipeline.jobs (workflow, rest, id) WHERE rest IS NOT NULL;
CREATE INDEX jobs_dead ON pipeline.jobs (workflow, failed_in, cause, id) WHERE failed_in IS NOT NULL;
CREATE UNIQUE INDEX jobs_processor ON pipeline.jobs (processor) WHERE processor IS NOT NULL;

-- Every job that has not ended has one row: due_at set = waits for its time ('infinity': for its rate limit); unsent =
-- waits at the gate; sent_at set = its message is in the broker (or on its way, by sent_by), or its job runs.
CREATE TABLE pipeline.outbox (
    job_id     uuid NOT NULL,
    seq        bigint GENERATED ALWAYS AS IDENTITY,
    phase_id   integer NOT NULL,
    priority   smallint NOT NULL,
    reserved   boolean NOT NULL DEFAULT false,
    due_at     timestamptz,
    sent_at    timestamptz,
    sent_by    integer,
    reason     text,
    rate_limit text,
    CONSTRAINT outbox_pkey PRIMARY KEY (job_id),
    CONSTRAINT sent_only_when_due CHECK (sent_at IS NULL OR due_at IS NULL)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);

CREATE INDEX outbox_waiting ON pipeline.outbox (phase_id, priority DESC, seq) WHERE sent_at IS NULL AND due_at IS NULL;
CREATE INDEX outbox_due ON pipeline.outbox (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_sent ON pipeline.outbox (phase_id) WHERE sent_at IS NOT NULL;
-- Who waits for a rate limit, in the order in which they go (due_at = 'infinity'), and who has been let through by it
-- and waits for capacity (due_at is null): each found without reading the others.
CREATE INDEX outbox_rate_limit ON pipeline.outbox (rate_limit, due_at, phase_id, priority DESC, seq)
    WHERE rate_limit IS NOT NULL AND sent_at IS NULL;
-- Messages of a rate limit that are in the broker.
CREATE INDEX outbox_rate_limit_sent ON pipeline.outbox (rate_limit) WHERE rate_limit IS NOT NULL AND sent_at IS NOT NULL;

-- One row an attempt, written when it ends. ready → due → sent → started → finished are its moments; the next attempt's
-- ready_at is this one's finished_at, so that the parts add up to the job's age.
CREATE TABLE pipeline.attempts (
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
    -- Successes, which are nearly all of the history, name their worker by its number: thirty bytes less a phase.
    worker_no   integer,
    CONSTRAINT attempts_pkey PRIMARY KEY (job_id, fence),
    CONSTRAINT outcome_is_known CHECK (outcome IN ('succeeded', 'retried', 'exhausted', 'failed', 'snoozed',
        'released', 'crashed', 'stale', 'poisoned', 'cancelled', 'undeliverable'))
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX attempts_finished ON pipeline.attempts (finished_at);

CREATE TABLE pipeline.workers (
    no            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            text NOT NULL UNIQUE,
    host          text NOT NULL,
    pid           integer NOT NULL,
    threads       integer NOT NULL,
    queues        text[] NOT NULL,
    started_at    timestamptz NOT NULL DEFAULT now(),
    heartbeat_at  timestamptz NOT NULL DEFAULT now(),
    confirmed_at  timestamptz NOT NULL DEFAULT now(),
    stopped_at    timestamptz,
    counters      jsonb NOT NULL DEFAULT '{}',
    -- Queues that this worker should consume and does not.
    not_consuming text[] NOT NULL DEFAULT '{}',
    -- Messages that it holds and has not started, by queue.
    unstarted     jsonb NOT NULL DEFAULT '{}',
    -- Threads in a call that nothing can interrupt.
    stuck         integer NOT NULL DEFAULT 0,
    -- It stopped in order and could not settle everything: what it left is not charged with a crash.
    leaving       boolean NOT NULL DEFAULT false
);
CREATE INDEX workers_living ON pipeline.workers (no) WHERE stopped_at IS NULL;

-- What several jobs share outside (one marketplace, one API): a rate that all workers keep together, and a pause during
-- which their jobs wait at the gate.
CREATE TABLE pipeline.rate_limits (
    name         text PRIMARY KEY,
    rate         double precision,
    burst        double precision NOT NULL DEFAULT 1,
    next_at      timestamptz NOT NULL DEFAULT '-infinity',
    paused_until timestamptz,
    pause_reason text,
    CONSTRAINT rate_is_above_zero CHECK (rate > 0),
    CONSTRAINT burst_is_at_least_one CHECK (burst >= 1),
    CONSTRAINT name_is_short CHECK (length(name) BETWEEN 1 AND 200)
);

-- The moment a job was promised its calls, while it waits for it.
CREATE TABLE pipeline.permits (
    job_id     uuid NOT NULL REFERENCES pipeline.jobs (id) ON DELETE CASCADE,
    rate_limit text NOT NULL,
    calls      integer NOT NULL,
    at         timestamptz NOT NULL,
    until      timestamptz NOT NULL,
    CONSTRAINT permits_pkey PRIMARY KEY (job_id, rate_limit)
);
-- The end of what a rate limit has promised.
CREATE INDEX permits_of_rate_limit ON pipeline.permits (rate_limit, at);

-- One row a minute and phase that had something to do: the charts.
CREATE TABLE pipeline.rollups (
    at        timestamptz NOT NULL,
    queue     text NOT NULL,
    waiting   integer NOT NULL,
    queued    integer NOT NULL,
    running   integer NOT NULL,
    dead      integer NOT NULL,
    succeeded integer NOT NULL,
    retried   integer NOT NULL,
    crashed   integer NOT NULL,
    waited    integer NOT NULL,
    failed    integer NOT NULL,
    cancelled integer NOT NULL,
    CONSTRAINT rollups_pkey PRIMARY KEY (at, queue)
);

-- The same by the quarter of an hour: a chart of a week reads a row for each quarter, not fifteen.
CREATE TABLE pipeline.rollup_quarters (LIKE pipeline.rollups INCLUDING CONSTRAINTS);
ALTER TABLE pipeline.rollup_quarters ADD CONSTRAINT rollup_quarters_pkey PRIMARY KEY (at, queue);

-- The counters of workers that were pruned, so that a total never falls.
CREATE TABLE pipeline.counter_totals (
    name text PRIMARY KEY,
    n    bigint NOT NULL
);

-- Whoever has one of these views locked leads: sending, or maintenance. Not an advisory lock, because PostgreSQL lets a
-- statement wait for the lock of a relation without a snapshot: a process that waits to lead for hours keeps nothing
-- from being vacuumed. A view, because VACUUM and ANALYZE of a whole database pass it by.
CREATE VIEW pipeline.relay_leader AS SELECT NULL::integer AS leader;
CREATE VIEW pipeline.maintenance_leader AS SELECT NULL::integer AS leader;
