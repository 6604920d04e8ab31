-- Whoever has this table locked leads the relay. A lock of a table and not an advisory lock, because PostgreSQL lets a
-- statement wait for it without a snapshot: a process that waits to lead for hours keeps nothing from being vacuumed.
-- It has no rows.
CREATE TABLE relay_seat (empty boolean);
