-- Histograms of durations: counts between these seconds, from a millisecond to a day, each half as long again as the one
-- before. What is read from one is at most that far off.
CREATE OR REPLACE FUNCTION pipeline.duration_bounds() RETURNS double precision[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(0.001 * 1.5 ^ n::double precision ORDER BY n) FROM generate_series(0, 45) AS n
$$;

-- Empty for nothing.
CREATE OR REPLACE FUNCTION pipeline.histogram(p_seconds double precision[]) RETURNS integer[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(p_seconds) > 0 THEN
        (WITH counted AS (
            SELECT width_bucket(s, b.bounds) AS place, count(*)::integer AS n
            FROM (SELECT pipeline.duration_bounds() AS bounds) b, unnest(p_seconds) AS s GROUP BY 1)
         SELECT array_agg(coalesce(c.n, 0) ORDER BY g) FROM generate_series(0, 46) AS g LEFT JOIN counted c ON c.place = g)
    ELSE '{}' END
$$;

CREATE OR REPLACE FUNCTION pipeline.add_histograms(p_one integer[], p_other integer[]) RETURNS integer[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(p_one) = 0 THEN p_other WHEN cardinality(p_other) = 0 THEN p_one
           ELSE (SELECT array_agg(a.n + b.n ORDER BY a.place) FROM unnest(p_one) WITH ORDINALITY AS a(n, place)
                 JOIN unnest(p_other) WITH ORDINALITY AS b(n, place) USING (place)) END
$$;
