-- A worker is alive while its session holds the advisory lock (7300, its number): PostgreSQL drops it
-- the moment the process dies, which no heartbeat could tell as fast.
CREATE OR REPLACE FUNCTION pipeline_alive(p_worker text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT EXISTS (
        SELECT 1 FROM pg_locks l JOIN workers w ON w.no = l.objid::bigint
        WHERE w.id = p_worker AND l.locktype = 'advisory' AND l.classid = 7300 AND l.objsubid = 2 AND l.granted
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
$$;

-- Who made an attempt: its history row has a name, or a number.
CREATE OR REPLACE FUNCTION pipeline_worker_name(p_name text, p_no integer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce(p_name, (SELECT w.id FROM workers w WHERE w.no = p_no), 'worker ' || p_no)
$$;

-- How a worker is: 'deaf' is connected and alive, but does not consume every queue that it should.
CREATE OR REPLACE FUNCTION pipeline_worker_state(p_worker workers) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN p_worker.stopped_at IS NOT NULL THEN 'stopped' WHEN NOT pipeline_alive(p_worker.id) THEN 'missing'
                WHEN p_worker.deaf <> '{}' THEN 'deaf' ELSE 'alive' END
$$;
