-- A worker is alive while its session holds the advisory lock of its number: PostgreSQL drops it
-- the moment the process dies, which no heartbeat could tell as fast. The lock's other key is the oid of our own table,
-- as is the custom, so that it cannot be a key of the application's.
CREATE OR REPLACE FUNCTION pipeline.alive(p_worker text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT EXISTS (
        SELECT 1 FROM pg_locks l JOIN pipeline.workers w ON w.no = l.objid::bigint
        WHERE w.id = p_worker AND l.locktype = 'advisory' AND l.classid = 'pipeline.workers'::regclass AND l.objsubid = 2 AND l.granted
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
$$;

-- Who made an attempt: its history row has a name, or a number.
CREATE OR REPLACE FUNCTION pipeline.worker_name(p_name text, p_no integer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce(p_name, (SELECT w.id FROM pipeline.workers w WHERE w.no = p_no), 'worker ' || p_no)
$$;

-- How a worker is: 'draining' takes nothing new because an operator said so; 'not_consuming' is connected and alive, but does
-- not consume every queue that it should.
CREATE OR REPLACE FUNCTION pipeline.worker_state(p_worker pipeline.workers) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN p_worker.stopped_at IS NOT NULL THEN CASE WHEN p_worker.died THEN 'died' ELSE 'stopped' END WHEN NOT pipeline.alive(p_worker.id) THEN 'missing'
                WHEN p_worker.draining_at IS NOT NULL THEN 'draining'
                WHEN p_worker.not_consuming <> '{}' THEN 'not_consuming' ELSE 'alive' END
$$;
