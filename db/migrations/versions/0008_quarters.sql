-- The rollups by the quarter of an hour: a chart of a week reads a row for each quarter, not fifteen.
CREATE TABLE rollup_quarters (LIKE rollups INCLUDING CONSTRAINTS);
ALTER TABLE rollup_quarters ADD CONSTRAINT rollup_quarters_pkey PRIMARY KEY (at, queue);

INSERT INTO rollup_quarters
SELECT date_bin('15 minutes', at, '2000-01-01'), queue, max(waiting), max(queued), max(running), max(dead),
       sum(succeeded), sum(retried), sum(crashed), sum(waited), sum(failed), sum(cancelled)
FROM rollups GROUP BY 1, 2;
