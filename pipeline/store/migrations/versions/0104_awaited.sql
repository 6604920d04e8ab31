-- Somebody waits for the end of this job and is told of it (pipeline.await_ends). On the row that each unfinished job has and
-- its end removes, so that the mark and the end cannot miss each other.
ALTER TABLE pipeline.outbox ADD COLUMN awaited boolean NOT NULL DEFAULT false;
