-- Somebody who watches and repairs: the command line, the API and its dashboard. Everything can be read; what changes
-- something runs with its owner's rights. An operator is a client, too.
GRANT SELECT ON
    pipeline.phases, pipeline.batches, pipeline.batch_ends, pipeline.jobs, pipeline.outbox, pipeline.attempts,
    pipeline.workers, pipeline.rate_limits, pipeline.permits, pipeline.rollups, pipeline.rollup_quarters,
    pipeline.counter_totals, pipeline.places, pipeline.turns, pipeline.key_turns, pipeline.key_rates, pipeline.keys, pipeline.tags, pipeline.steps, pipeline.signals, pipeline.hooks, pipeline.schedules, pipeline.attempt_logs, pipeline.audit, pipeline.bulk_actions, pipeline.bulk_held, pipeline.versions, pipeline.installation, pipeline.own_functions, pipeline.granted_roles,
    pipeline.running_jobs, pipeline.processors, pipeline.counters, pipeline.relay_leader, pipeline.maintenance_leader
TO :"role";
GRANT EXECUTE ON FUNCTION
    pipeline.replay_many(uuid[], double precision),
    pipeline.discard(uuid, text),
    pipeline.delete(uuid[]),
    pipeline.reset(uuid, text),
    pipeline.move(text, text, uuid, integer),
    pipeline.pause(text, double precision),
    pipeline.pause_phases(text, text, timestamptz),
    pipeline.resume_phases(text, text),
    pipeline.set_pool(text, text, integer, boolean),
    pipeline.set_rate(text, text, integer, double precision, boolean),
    pipeline.drain(text, boolean),
    pipeline.begin_bulk(text, text, text, text, jsonb, integer, double precision, text, uuid),
    pipeline.steer_bulk(bigint, text),
    pipeline.record(text, text, text, text, text, text, integer, uuid[], jsonb),
    pipeline.set_rate_limit(text, double precision, double precision),
    pipeline.pause_rate_limit(text, timestamptz, text),
    pipeline.resume_rate_limit(text),
    pipeline.set_key_weight(text, text, integer),
    pipeline.pause_key(text, text, timestamptz),
    pipeline.resume_key(text, text),
    pipeline.verify(boolean),
    pipeline.reclaim(integer[], uuid[], bigint[]),
    pipeline.silent_jobs(interval),
    pipeline.unsend(uuid[], bigint[], text)
TO :"role";
-- What only reads needs no rights but the reader's; functions that it calls in turn are listed with it.
GRANT EXECUTE ON FUNCTION
    pipeline.stats(integer),
    pipeline.attempts_recent(double precision, integer),
    pipeline.relay_lag(),
    pipeline.phases_waited_for(),
    pipeline.capacity(pipeline.phases),
    pipeline.gate_reason(pipeline.phases),
    pipeline.within_pool(integer, integer),
    pipeline.list_jobs(text, text, text, uuid, integer, integer, text),
    pipeline.find_jobs(text, text, text, text, timestamptz, timestamptz, text, text, uuid, integer, integer),
    pipeline.id_at(timestamptz),
    pipeline.timeline(uuid),
    pipeline.ends(uuid, uuid, integer, integer),
    pipeline.worker_name(text, integer),
    pipeline.worker_state(pipeline.workers),
    pipeline.alive(text),
    pipeline.dead_groups(text, integer, integer),
    pipeline.dead_group(text, text, text, integer, integer),
    pipeline.turns_of(text),
    pipeline.list_turns(text, text, integer),
    pipeline.undeclared(),
    pipeline.missing_workers(),
    pipeline.expected_messages(double precision),
    pipeline.is_confirmed(pipeline.outbox),
    pipeline.unclaimed(timestamptz),
    pipeline.overtaken(timestamptz, double precision),
    pipeline.unstarted_messages(timestamptz, interval)
TO :"role";
