"""A million jobs and what hangs on them, written by SQL as weeks of work would have left them.

The rows come out the same at every run but for their ids and times. Jobs were made ever faster up to now; the newest
tenth holds what waits.
"""

from __future__ import annotations

from bench import lab

STATEMENTS = """
SELECT setseed(0.5);
SET session_replication_role = replica;

CREATE FUNCTION pg_temp.id_at(at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM at) * 1000)::bigint) FROM 3)
        FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
$$;

INSERT INTO pipeline.workers (id, host, pid, threads, queues, started_at, stopped_at)
SELECT 'host-' || g, 'host', g, 16, (SELECT array_agg(queue) FROM pipeline.phases), now() - interval '7 days',
       CASE WHEN g > 8 THEN now() - interval '10 minutes' END
FROM generate_series(1, 40) g;

INSERT INTO pipeline.batches (id, total, remaining, failed, sealed, callback_workflow, created_at, completed_at)
SELECT pg_temp.id_at(a.at), 100, CASE WHEN g > 4900 THEN 40 ELSE 0 END, g % 3, true, 'match-finish', a.at,
       CASE WHEN g <= 4900 THEN a.at + interval '5 minutes' END
FROM generate_series(1, 5000) g CROSS JOIN LATERAL (SELECT now() - interval '7 days' * (5000 - g) / 5000 AS at) a;

INSERT INTO sources (id, name, adapter, base_url, rate_limit_per_minute, last_success_at)
SELECT 's' || g, 'market ' || g, 'html', 'https://market-' || g || '.example', 60, now() FROM generate_series(1, 20) g;
INSERT INTO pipeline.rate_limits (name, rate) SELECT 'source:s' || g, 1 FROM generate_series(1, 20) g;

-- Nine of ten succeeded, five in a hundred wait, three failed for one of thirty causes; the rest were cancelled or
-- back off.
INSERT INTO pipeline.jobs (id, created_at, workflow, trace_id, span_id, batch_id, priority, body, phase, status,
    attempts,
                  max_attempts,
                  fence, ready_at, updated_at, next_retry_at, completed_at, error_message, cause, result, rate_limit)
WITH flows AS MATERIALIZED (
    SELECT workflow, array_agg(phase ORDER BY position) AS phases
    FROM pipeline.phases WHERE position > 0 GROUP BY workflow
), open_batches AS MATERIALIZED (
    SELECT array_agg(id ORDER BY id) AS ids FROM pipeline.batches
), made AS MATERIALIZED (
    SELECT g, now() - interval '7 days' * (1 - g::float8 / JOBS) ^ 2 - interval '1 second' AS at, random() AS fate,
           random() ^ 3 AS place, (29 * random() ^ 4)::integer AS cause,
           (ARRAY['website', 'website', 'website', 'website', 'scrape', 'scrape',
                  'match', 'match', 'document', 'valuation',
                  'chain'])[1 + floor(random() * 11)::integer] AS workflow
    FROM generate_series(1, JOBS) g
), fated AS (
    SELECT m.*, f.phases, CASE WHEN m.g > JOBS * 0.9 AND m.fate < 0.5 THEN 'pending'
        WHEN m.g > JOBS * 0.9 AND m.fate < 0.52 THEN 'retryable'
        WHEN m.fate > 0.97 THEN 'failed' WHEN m.fate > 0.96 THEN 'cancelled' ELSE 'succeeded' END AS status
    FROM made m JOIN flows f ON f.workflow = m.workflow
), placed AS (
    SELECT f.*, CASE WHEN f.status = 'succeeded' THEN f.phases[cardinality(f.phases)]
        ELSE f.phases[1 + floor(f.place * cardinality(f.phases))::integer] END AS phase,
        CASE WHEN f.status = 'failed' THEN format('%s: %s is no answer (part%s.py:%s)',
            (ARRAY['ValueError', 'TimeoutError', 'HTTPError'])[1 + f.cause % 3], f.g, f.cause % 6, 10 + f.cause)
            END AS error
    FROM fated f
)
SELECT pg_temp.id_at(p.at), p.at, p.workflow, md5(p.g::text), left(md5(p.g::text), 16),
       CASE WHEN p.workflow = 'match' THEN b.ids[1 + p.g::bigint * 4999 / JOBS] END, p.g % 3,
       jsonb_build_object('url', 'https://example.org/' || p.g, 'text', repeat('x', 120)), p.phase, p.status,
       CASE WHEN p.status IN ('failed', 'retryable') THEN 2 ELSE 0 END, 3, 1, p.at, p.at,
       CASE WHEN p.status = 'retryable' THEN now() + interval '1 hour' * p.place END,
       CASE WHEN p.status IN ('succeeded', 'failed', 'cancelled') THEN least(p.at + interval '3 seconds', now()) END,
       p.error, CASE WHEN p.status = 'failed' THEN pipeline.cause(p.error) END,
       CASE WHEN p.status = 'succeeded' THEN '{"text": "found"}'::jsonb END,
       CASE WHEN p.workflow = 'scrape' THEN 'source:s' || 1 + p.g % 20 END
FROM placed p CROSS JOIN open_batches b ORDER BY p.g;

-- As many run as the pools have processors, at most twenty a phase.
UPDATE pipeline.jobs j SET status = 'running', locked_by = 'host-' || 1 + r.n % 8, locked_at = now(),
    heartbeat_at = now()
FROM (SELECT w.id, ph.pool, row_number() OVER (PARTITION BY ph.id ORDER BY w.id)::integer AS n
      FROM pipeline.jobs w JOIN pipeline.phases ph ON ph.workflow = w.workflow AND ph.phase = w.phase
      WHERE w.status = 'pending') r
WHERE j.id = r.id AND r.n <= least(coalesce(r.pool, 20), 20);

UPDATE pipeline.places p SET job_id = r.id
FROM (SELECT w.id, ph.id AS phase_id, row_number() OVER (PARTITION BY ph.id ORDER BY w.id)::integer AS n
      FROM pipeline.jobs w JOIN pipeline.phases ph ON ph.workflow = w.workflow AND ph.phase = w.phase
      WHERE w.status = 'running') r
WHERE p.phase_id = r.phase_id AND p.number = r.n;

-- Those that run are out, and a thousand more of a phase; the others wait at the gate, one of ten for its time.
INSERT INTO pipeline.outbox (job_id, phase_id, priority, due_at, sent_at, reason, rate_limit)
SELECT w.id, w.phase_id, w.priority, CASE WHEN w.n > 1000 THEN w.due END,
       CASE WHEN w.n <= 1000 THEN w.ready_at END, CASE WHEN w.n > 1000 THEN w.reason END, w.rate_limit
FROM (SELECT j.id, ph.id AS phase_id, j.priority, j.ready_at, j.rate_limit,
             coalesce(j.next_retry_at, CASE WHEN j.n % 10 = 0
                 THEN now() + interval '1 second' * (j.n % 3600) END) AS due,
             CASE WHEN j.status = 'retryable' THEN 'backoff' WHEN j.n % 10 = 0 THEN 'rate limit' END AS reason,
             CASE WHEN j.status = 'retryable' THEN 1001
                  ELSE row_number() OVER (PARTITION BY ph.id, j.status ORDER BY j.id) END AS n
      FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM pipeline.jobs WHERE completed_at IS NULL) j
      JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase) w ORDER BY w.id;

-- An attempt for each phase that a job passed, and two for one that failed.
INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, sent_at, started_at, finished_at, phase,
    outcome, worker, error)
SELECT j.id, f.n, 1, t.at, t.at, t.at, least(t.at + interval '1 second', now()),
       CASE WHEN j.status = 'failed' THEN j.phase
            ELSE (SELECT ph.phase FROM pipeline.phases ph WHERE ph.workflow = j.workflow AND ph.position = f.n) END,
       CASE WHEN j.status = 'succeeded' THEN 'succeeded' WHEN j.status = 'failed' AND f.n = 2 THEN 'exhausted'
            WHEN j.status = 'cancelled' THEN 'cancelled' ELSE 'retried' END,
       'host-' || 1 + f.n % 8, j.error_message
FROM pipeline.jobs j JOIN pipeline.phases here ON here.workflow = j.workflow AND here.phase = j.phase
CROSS JOIN LATERAL generate_series(1, CASE WHEN j.status = 'failed' THEN 2 ELSE here.position END) AS f(n)
CROSS JOIN LATERAL (SELECT j.created_at + interval '1 second' * (f.n - 1) AS at) t
WHERE j.status IN ('succeeded', 'failed', 'cancelled', 'retryable') ORDER BY j.id, f.n;

-- What pipeline.roll_up would have written, minute by minute.
INSERT INTO pipeline.rollups
SELECT m.at, ph.queue, 500, 1000, 10, 3000, coalesce(e.succeeded, 0), coalesce(e.retried, 0), 0, 0,
       coalesce(e.failed, 0), coalesce(e.cancelled, 0)
FROM generate_series(date_trunc('minute', now() - interval '7 days'), date_trunc('minute', now()), '1 minute') AS m(at)
CROSS JOIN (SELECT DISTINCT ph.queue FROM pipeline.phases ph
    JOIN pipeline.jobs j ON j.workflow = ph.workflow AND j.phase = ph.phase
            AND j.status = 'failed') ph
LEFT JOIN (
    SELECT date_trunc('minute', a.finished_at) + interval '1 minute' AS at, j.workflow || '.' || a.phase AS queue,
           count(*) FILTER (WHERE a.outcome = 'succeeded') AS succeeded,
           count(*) FILTER (WHERE a.outcome = 'retried') AS retried,
           count(*) FILTER (WHERE a.outcome = 'exhausted') AS failed,
           count(*) FILTER (WHERE a.outcome = 'cancelled') AS cancelled
    FROM pipeline.attempts a JOIN pipeline.jobs j ON j.id = a.job_id GROUP BY 1, 2) e
    ON e.at = m.at AND e.queue = ph.queue ORDER BY 1, 2;

INSERT INTO pipeline.rollup_quarters
SELECT date_bin('15 minutes', at, '2000-01-01'), queue, max(waiting), max(queued), max(running), max(dead),
       sum(succeeded), sum(retried), sum(crashed), sum(waited), sum(failed), sum(cancelled)
FROM pipeline.rollups GROUP BY 1, 2 ORDER BY 1, 2;

-- A workflow of which little else is known has durations like any other.
UPDATE pipeline.rollups SET ran = array_fill(3, ARRAY[47]), took = array_fill(1, ARRAY[47])
WHERE at > now() - interval '1 day';
UPDATE pipeline.rollup_quarters SET ran = array_fill(40, ARRAY[47]), took = array_fill(12, ARRAY[47]);

-- One job in fifty has a tag of a hundred; the errors of failed ones have a log; batches have parents.
UPDATE pipeline.jobs SET tags = ARRAY['tag-' || abs(hashtext(id::text)) % 100] WHERE abs(hashtext(id::text)) % 50 = 0;
INSERT INTO pipeline.tags (tag, job_id) SELECT tags[1], id FROM pipeline.jobs WHERE tags IS NOT NULL;
INSERT INTO pipeline.attempt_logs (job_id, fence, traceback, lines)
SELECT job_id, fence, repeat('in a line of the shop ', 80), repeat('a line ', 80)
FROM pipeline.attempts WHERE outcome = 'exhausted';
WITH parents AS (
    SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM pipeline.jobs WHERE workflow = 'website' LIMIT 5000
), families AS (SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM pipeline.batches)
UPDATE pipeline.batches b SET parent_job = p.id, policy = 'best_effort'
FROM families f JOIN parents p USING (n) WHERE b.id = f.id;

-- Jobs of a thousand customers wait for their turns.
INSERT INTO pipeline.turns (workflow, field, per_key) VALUES ('website', 'customer', 2);
UPDATE pipeline.outbox o SET turns_id = t.id, key = 'customer-' || abs(hashtext(o.job_id::text)) % 1000,
    has_turn = o.sent_at IS NOT NULL
FROM pipeline.turns t, pipeline.phases ph
WHERE ph.id = o.phase_id AND ph.workflow = 'website' AND t.workflow = 'website'
    AND (o.sent_at IS NOT NULL OR o.due_at IS NOT NULL);

INSERT INTO pipeline.schedules (workflow, name, source, cron, catch_up, next_at, planned)
SELECT 'website', 'every-' || g, 'run time', '0 3 * * *', 1, now() + interval '1 hour', true
FROM generate_series(1, 1000) g;
INSERT INTO pipeline.audit (at, who, door, action, reason, jobs, job_ids)
SELECT now() - interval '1 second' * g, 'somebody ' || g % 20, 'api', 'cancel', 'a mistake', 1,
       ARRAY[gen_random_uuid()]
FROM generate_series(JOBS / 10, 1, -1) g;
INSERT INTO pipeline.bulk_actions (who, door, action, filter, total)
SELECT 'ada', 'api', 'canary', '{}', 1 FROM generate_series(1, 50);

-- As if work went on while the measurement lasts: there are always thousands of attempts that ended a moment ago.
UPDATE pipeline.attempts SET finished_at = now() + interval '10 minutes' * random()
WHERE (job_id, fence) IN (SELECT job_id, fence FROM pipeline.attempts ORDER BY finished_at DESC LIMIT 10000);

-- One large project and many small ones.
INSERT INTO projects (name, status) SELECT 'project ' || g, 'MATCHING' FROM generate_series(1, 120) g;
INSERT INTO dataset_entries (project_id, name)
SELECT CASE WHEN g <= JOBS / 10 THEN 1 ELSE 2 + g % 119 END, 'record ' || g FROM generate_series(1, JOBS / 10 + 2000) g;
INSERT INTO tasks (project_id, dataset_entry_id, status, decision, qid, score, candidates)
SELECT e.project_id, e.id, CASE WHEN e.id % 10 = 0 THEN 'QUEUED' ELSE 'COMPLETED' END,
       CASE WHEN e.id % 10 = 0 THEN NULL WHEN e.id % 3 = 0 THEN 'none' ELSE 'matched' END,
       CASE WHEN e.id % 10 > 0 AND e.id % 3 > 0 THEN 'Q' || e.id END, 0.9, '[{"qid": "Q1", "score": 0.9}]'
FROM dataset_entries e ORDER BY e.id;

SET session_replication_role = origin;
VACUUM ANALYZE;
CHECKPOINT;
"""
# Eight of the workers live: their locks are held by the connection that fills.
ALIVE = """SELECT pg_advisory_lock('pipeline.workers'::regclass::oid::integer, no) FROM pipeline.workers
    WHERE stopped_at IS NULL"""


def fill(db: lab.Connection, jobs: int) -> None:
    for statement in filter(str.strip, STATEMENTS.replace("JOBS", str(jobs)).split(";\n")):
        db.execute(statement)
    db.execute(ALIVE)
