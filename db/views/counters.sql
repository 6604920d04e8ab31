-- The counters of all workers, living, stopped and pruned: a total that never falls.
CREATE OR REPLACE VIEW counters AS
SELECT c.name, sum(c.n)::bigint AS n
FROM (SELECT t.name, t.n FROM counter_totals t
      UNION ALL
      SELECT e.key, e.value::bigint FROM workers w CROSS JOIN LATERAL jsonb_each_text(w.counters) e) c
GROUP BY c.name;

CREATE OR REPLACE FUNCTION pipeline_keep_counters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO counter_totals AS t (name, n)
    SELECT e.key, sum(e.value::bigint) FROM gone g CROSS JOIN LATERAL jsonb_each_text(g.counters) e GROUP BY e.key
    ON CONFLICT (name) DO UPDATE SET n = t.n + excluded.n;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS workers_keep_counters ON workers;
CREATE TRIGGER workers_keep_counters AFTER DELETE ON workers
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION pipeline_keep_counters();
