-- Workflows that are submitted when a job of another one ends: by the very transition that ends it.
CREATE TABLE pipeline.hooks (
    workflow text NOT NULL,
    event    text NOT NULL,
    submits  text NOT NULL,
    body     jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT hooks_pkey PRIMARY KEY (workflow, event, submits),
    CONSTRAINT event_is_an_end CHECK (event IN ('succeeded', 'failed', 'cancelled')),
    CONSTRAINT body_is_an_object CHECK (jsonb_typeof(body) = 'object')
);

-- Throttled jobs wait at the gate, in order, and are given no time.
ALTER TABLE pipeline.outbox DROP COLUMN reserved;
