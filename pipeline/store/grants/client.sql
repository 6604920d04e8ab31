-- An application that submits and steers jobs. These functions run with their owner's rights: no table is needed.
-- By hand: psql -v role=ROLE -f client.sql
GRANT USAGE ON SCHEMA pipeline TO :"role";
GRANT EXECUTE ON FUNCTION
    pipeline.submit(text, jsonb, integer, uuid, text, text, timestamptz, text, text, interval, text[], timestamptz),
    pipeline.submit_many(text, jsonb[], integer, uuid, text, text[], timestamptz, text, text, interval, text[], timestamptz),
    pipeline.cancel(uuid, text),
    pipeline.cancel_many(uuid[], text),
    pipeline.replay(uuid, bigint, timestamptz),
    pipeline.signal(uuid, text, jsonb),
    pipeline.signal_by_link(uuid, text, jsonb, bigint),
    pipeline.link_state(uuid, text, bigint),
    pipeline.open_batch(text, jsonb),
    pipeline.seal_batch(uuid),
    pipeline.request_send(uuid, text),
    pipeline.await_ends(uuid[]),
    pipeline.job_status(uuid[]),
    pipeline.schedule(text, text, text, interval, text, jsonb, text, integer, interval, integer, text[]),
    pipeline.unschedule(text, text),
    pipeline.pause_schedule(text, text),
    pipeline.resume_schedule(text, text),
    pipeline.run_schedule(text, text),
    pipeline.backfill(text, text, timestamptz, timestamptz),
    pipeline.list_schedules(text, text, text[], integer),
    pipeline.moment(uuid),
    pipeline.new_id()
TO :"role";
