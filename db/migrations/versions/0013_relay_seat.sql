-- Whoever has this view locked leads the relay. Not an advisory lock, because PostgreSQL lets a statement wait for the
-- lock of a relation without a snapshot: a process that waits to lead for hours keeps nothing from being vacuumed.
-- A view, because VACUUM and ANALYZE of a whole database pass it by.
CREATE VIEW relay_seat AS SELECT NULL::integer AS leader;
