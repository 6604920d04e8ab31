-- The counters of all workers, living, stopped and pruned: a total that never falls.
CREATE OR REPLACE VIEW pipeline.counters AS
SELECT c.name, sum(c.n)::bigint AS n
FROM (SELECT t.name, t.n FROM pipeline.counter_totals t WHERE t.name <> 'counted.until'
      UNION ALL
      SELECT e.key, e.value::bigint FROM pipeline.workers w CROSS JOIN LATERAL jsonb_each_text(w.counters) e) c
GROUP BY c.name;

CREATE OR REPLACE FUNCTION pipeline.keep_counters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pipeline.counter_totals AS t (name, n)
    SELECT e.key, sum(e.value::bigint) FROM gone g CROSS JOIN LATERAL jsonb_each_text(g.counters) e GROUP BY e.key
    ON CONFLICT (name) DO UPDATE SET n = t.n + excluded.n;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS workers_keep_counters ON pipeline.workers;
CREATE TRIGGER workers_keep_counters AFTER DELETE ON pipeline.workers
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION pipeline.keep_counters();
