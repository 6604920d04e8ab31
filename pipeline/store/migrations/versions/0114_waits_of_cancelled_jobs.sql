-- A job that is cancelled while it waits for an event or for children: if it is replayed, it waits for the same again.
ALTER TABLE pipeline.jobs ADD COLUMN waited_for text;
