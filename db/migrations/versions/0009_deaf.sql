-- The queues that a worker should hear and does not: connected, but deaf.
ALTER TABLE workers ADD COLUMN deaf text[] NOT NULL DEFAULT '{}';
