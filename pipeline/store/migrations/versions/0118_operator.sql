-- Jobs of a bulk action that somebody else held when it came to them; it comes back to each. Without a foreign key: its check
-- would wait for the job's row.
CREATE TABLE pipeline.bulk_held (
    action_id bigint NOT NULL,
    job_id    uuid NOT NULL,
    tried_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT bulk_held_pkey PRIMARY KEY (action_id, job_id),
    CONSTRAINT action_exists FOREIGN KEY (action_id) REFERENCES pipeline.bulk_actions (id) ON DELETE CASCADE
);
CREATE INDEX bulk_held_oldest ON pipeline.bulk_held (action_id, tried_at, job_id);
-- Nothing more matches its filter: what is left is in bulk_held.
ALTER TABLE pipeline.bulk_actions ADD COLUMN walked boolean NOT NULL DEFAULT false;

-- How long what ended in that time took, by the bounds of pipeline.duration_bounds: of a phase, the function itself, of
-- attempts that succeeded; of jobs that ended in it, from their submission.
ALTER TABLE pipeline.rollups ADD COLUMN ran integer[] NOT NULL DEFAULT '{}', ADD COLUMN took integer[] NOT NULL DEFAULT '{}';
ALTER TABLE pipeline.rollup_quarters ADD COLUMN ran integer[] NOT NULL DEFAULT '{}', ADD COLUMN took integer[] NOT NULL DEFAULT '{}';
