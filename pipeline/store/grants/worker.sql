-- Worker processes and "pipeline relay". They also get EXECUTE on every function of ours (roles.py).
-- Numbers come from identity columns, which need no right on their sequences. What decides about rights and functions
-- can be read and not written: the next migration acts upon it.
GRANT USAGE ON SCHEMA pipeline TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON
    pipeline.phases, pipeline.batches, pipeline.batch_ends, pipeline.jobs, pipeline.outbox, pipeline.attempts,
    pipeline.workers, pipeline.rate_limits, pipeline.permits, pipeline.breakers, pipeline.breaker_failures, pipeline.rollups, pipeline.rollup_quarters,
    pipeline.counter_totals, pipeline.places, pipeline.turns, pipeline.key_turns, pipeline.key_rates, pipeline.keys, pipeline.tags, pipeline.steps, pipeline.signals, pipeline.hooks, pipeline.schedules, pipeline.attempt_logs, pipeline.audit, pipeline.bulk_actions, pipeline.bulk_held, pipeline.epochs
TO :"role";
GRANT SELECT ON
    pipeline.versions, pipeline.installation, pipeline.running_jobs, pipeline.processors, pipeline.counters
TO :"role";
-- Whether the relay sleeps, and when maintenance looks for expired jobs.
GRANT SELECT, UPDATE ON SEQUENCE pipeline.relay_asleep, pipeline.expiry_look TO :"role";
-- Whoever leads holds a lock on one of these.
GRANT SELECT, UPDATE ON pipeline.relay_leader, pipeline.maintenance_leader TO :"role";
