-- Schedules that get no jobs: the leader of maintenance could make nothing of them, or it lives and leaves them alone (while
-- nobody leads, jobs are recovered by nobody either: that is another finding). There is nothing to repair: what is wrong is
-- outside of the row.
CREATE OR REPLACE FUNCTION pipeline.neglected_schedules() RETURNS TABLE (problem text, schedule text, detail text)
LANGUAGE sql STABLE AS $$
    SELECT 'schedule without jobs', s.workflow || '.' || s.name, s.problem FROM pipeline.schedules s WHERE s.problem IS NOT NULL
    UNION ALL
    SELECT 'schedule that nobody moves on', s.workflow || '.' || s.name,
           format('its moment was %s; a process leads maintenance: see its log, or whether a transaction holds the row (pg_locks)',
                  to_char(s.next_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS" UTC"'))
    FROM pipeline.schedules s
    WHERE s.next_at < now() - interval '5 minutes' AND s.paused_at IS NULL AND NOT s.waits AND EXISTS (
            SELECT 1 FROM pg_locks l WHERE l.locktype = 'relation' AND l.relation = 'pipeline.maintenance_leader'::regclass AND l.granted
                AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
    ORDER BY 1, 2
$$;
