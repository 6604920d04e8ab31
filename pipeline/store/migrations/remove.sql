-- Everything that the migrations made, by name. The schema goes if nothing of somebody else's is in it.
DROP VIEW pipeline.relay_leader, pipeline.maintenance_leader;
DROP TABLE pipeline.epochs, pipeline.schedules, pipeline.key_turns, pipeline.key_rates, pipeline.permits, pipeline.rate_limits, pipeline.breaker_failures, pipeline.breakers, pipeline.attempts, pipeline.attempt_logs, pipeline.audit, pipeline.bulk_held, pipeline.bulk_actions, pipeline.steps, pipeline.signals, pipeline.hooks, pipeline.outbox, pipeline.batch_ends, pipeline.batches,
    pipeline.jobs, pipeline.keys, pipeline.tags, pipeline.places, pipeline.phases, pipeline.turns, pipeline.workers, pipeline.rollups, pipeline.rollup_quarters, pipeline.counter_totals,
    pipeline.own_functions, pipeline.granted_roles, pipeline.installation, pipeline.versions;
DROP SEQUENCE pipeline.relay_asleep, pipeline.expiry_look;
DROP FUNCTION pipeline.new_id();
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = 'pipeline'::regnamespace)
       AND NOT EXISTS (SELECT 1 FROM pg_proc WHERE pronamespace = 'pipeline'::regnamespace)
       AND NOT EXISTS (SELECT 1 FROM pg_type WHERE typnamespace = 'pipeline'::regnamespace) THEN
        DROP SCHEMA pipeline;
    END IF;
END $$;
