-- Successes, which are nearly all of the history, name their worker by its number: thirty bytes less a phase.
ALTER TABLE attempts ADD COLUMN worker_no integer;
