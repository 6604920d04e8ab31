-- The seed's table of scrape jobs, as a view: reading shows the engine's jobs, writing goes through its functions.
create or replace view scrape_jobs as
select
    j.id::text                                                      as id,
    j.body ->> 'intake_id'                                          as intake_id,
    j.body ->> 'source_id'                                          as source_id,
    coalesce(j.body -> 'query_params', '{}')                        as query_params,
    j.status                                                        as status,
    -- the engine's row names a holder only while there is one; the seed asks who did a finished job
    coalesce(j.locked_by, pipeline.worker_name(last.worker, last.worker_no)) as locked_by,
    coalesce(j.locked_at, last.started_at)                          as locked_at,
    j.heartbeat_at                                                  as heartbeat_at,
    j.attempts + j.crashes                                          as attempts,
    j.max_attempts                                                  as max_attempts,
    j.attempts                                                      as retry_count,
    j.next_retry_at                                                 as next_retry_at,
    j.wait_reason                                                   as wait_reason,
    j.error_message                                                 as error_message,
    j.priority::integer                                             as priority,
    j.batch_id::text                                                as batch_id,
    j.created_at                                                    as created_at,
    j.updated_at                                                    as updated_at,
    j.completed_at                                                  as completed_at
from pipeline.jobs j
left join pipeline.attempts last on last.job_id = j.id and last.fence = j.fence and j.completed_at is not null
where j.workflow = 'scrape';

-- One job for each source, and one valuation when all jobs of the intake are final. Jobs that come while earlier
-- ones are still open join their batch, so that the valuation waits for them too.
create or replace function scrape_collect(p_intake text, p_sources text[], p_params jsonb default '{}',
                                            p_priority integer default 0)
returns setof uuid language plpgsql as $$
declare
    v_batch uuid;
    v_source text;
begin
    select batch_id into v_batch from coin_intakes where id = p_intake for no key update;
    if not found then
        raise exception using errcode = 'PL020', message = format('there is no coin intake %L', p_intake),
            hint = 'insert it into coin_intakes first';
    end if;
    select s into v_source from unnest(p_sources) s where not exists (select 1 from sources where id = s) limit 1;
    if found then
        raise exception using errcode = 'PL021', message = format('there is no source %L', v_source),
            hint = 'SELECT id, name FROM sources shows those that exist';
    end if;
    if cardinality(p_sources) = 0 then return; end if;
    perform 1 from pipeline.batches where id = v_batch and completed_at is null for update;
    if found then
        update pipeline.batches set sealed = false where id = v_batch;
    else
        v_batch := pipeline.open_batch('valuation', jsonb_build_object('intake_id', p_intake));
        update coin_intakes set batch_id = v_batch where id = p_intake;
    end if;
    foreach v_source in array p_sources loop
        return next pipeline.submit('scrape', jsonb_build_object('intake_id', p_intake, 'source_id', v_source,
            'query_params', coalesce(p_params, '{}')), p_priority, v_batch);
    end loop;
    perform pipeline.seal_batch(v_batch);
end $$;

create or replace function scrape_jobs_insert() returns trigger language plpgsql as $$
begin
    if coalesce(new.status, 'pending') <> 'pending' then
        raise exception using errcode = 'PL022', message = format('a new job is pending, not %s', new.status),
            hint = 'leave status out, or insert ''pending''; workers do the rest';
    end if;
    select id::text into new.id from scrape_collect(new.intake_id, array[new.source_id], new.query_params,
                                                       coalesce(new.priority, 0)) as id;
    return new;
end $$;

create or replace function scrape_jobs_update() returns trigger language plpgsql as $$
declare
    v_verdict text;
begin
    if new is not distinct from old then
        return old;
    elsif new.status = 'cancelled' and old.status <> 'cancelled' then
        v_verdict := case when pipeline.cancel(old.id::uuid, coalesce(new.error_message, 'cancelled by hand'))
                     then 'done' else 'it has ended already: ' || old.status end;
    elsif new.status = 'pending' and old.status = 'running' then
        v_verdict := pipeline.reset(old.id::uuid, 'reset by hand');
    elsif new.status = 'pending' and old.status = 'failed' then
        v_verdict := case when pipeline.replay(old.id::uuid) then 'done' else 'it is not failed any more' end;
    else
        v_verdict := 'only a worker''s claim and its outcome change a job';
    end if;
    if v_verdict not in ('done', 'reset') then
        raise exception using errcode = 'PL023',
            message = format('job %s stays as it is: %s', old.id, v_verdict),
            hint = 'by hand: status = ''cancelled'' cancels, ''pending'' takes a running job from its worker '
                || 'or sends a failed one again; to have jobs worked on, start a worker';
    end if;
    return new;
end $$;

create or replace trigger scrape_jobs_insert instead of insert on scrape_jobs
    for each row execute function scrape_jobs_insert();
create or replace trigger scrape_jobs_update instead of update on scrape_jobs
    for each row execute function scrape_jobs_update();

-- ---- sources: rate, breaker, pauses

-- The rate limit of a source has the source's rate.
create or replace function source_rate() returns trigger language plpgsql as $$
begin
    perform pipeline.set_rate_limit('source:' || new.id, new.rate_limit_per_minute / 60.0);
    return new;
end $$;

create or replace trigger sources_rate after insert or update of rate_limit_per_minute on sources
    for each row execute function source_rate();

-- Whether calls go through: no pause, or one that was no breaker's and is over.
create or replace function source_closed(p_source sources) returns boolean language sql stable as $$
    select p_source.paused_until is null or p_source.paused_until <= now() and p_source.pause_reason <> 'breaker'
$$;

-- May this job call the source now? 'closed': yes. 'half-open': yes, as the one probe of the whole cluster, for
-- p_probe seconds at most. 'open': no, and so many seconds are left of the reason's pause.
create or replace function source_enter(p_source text, p_job uuid, p_probe double precision,
    out state text, out seconds double precision, out reason text)
language plpgsql as $$
declare
    v_source sources;
begin
    select * into v_source from sources where id = p_source;
    state := 'closed'; seconds := 0;
    if source_closed(v_source) then return; end if;
    if v_source.paused_until <= now() then
        update sources set probe_by = p_job, probe_until = now() + make_interval(secs => p_probe), probes = probes + 1
        where id = p_source and pause_reason = 'breaker' and paused_until <= now()
            and (probe_until is null or probe_until <= now() or probe_by = p_job)
        returning * into v_source;
        if found then
            state := 'half-open';
            perform pipeline.pause_rate_limit('source:' || p_source, v_source.probe_until, 'breaker');
            perform source_refund(p_source);
            return;
        end if;
        select * into v_source from sources where id = p_source;
        if source_closed(v_source) then return; end if;
    end if;
    state := 'open'; reason := v_source.pause_reason;
    seconds := extract(epoch from least(greatest(v_source.paused_until, v_source.probe_until),
                                        now() + interval '365 days') - now());
end $$;

-- A call failed. The streak as it now is; null when the breaker is open already (the failure then costs nothing).
-- Below the limit the job pays with an execution, which is remembered in case the streak opens the breaker.
create or replace function source_failed(p_source text, p_job uuid, p_fence bigint, p_limit integer,
                                                  p_error text)
returns integer language plpgsql as $$
declare
    v_streak integer;
begin
    update sources set last_failure_at = now(), last_error = left(p_error, 1000),
        failure_streak = failure_streak + source_closed(sources)::integer
    where id = p_source returning case when source_closed(sources) then failure_streak end into v_streak;
    if v_streak < p_limit then
        insert into source_failures values (p_source, p_job, p_fence) on conflict do nothing;
    end if;
    return v_streak;
end $$;

-- A call succeeded: the streak ends. Says so at most once a second, so that a busy source's row stays cool.
create or replace function source_succeeded(p_source text) returns void language plpgsql as $$
begin
    update sources set failure_streak = 0, last_success_at = now()
    where id = p_source and (paused_until is null or pause_reason <> 'breaker')
        and (failure_streak > 0 or last_success_at is null or last_success_at < now() - interval '1 second');
    if found then
        delete from source_failures where source_id = p_source;
    end if;
end $$;

-- Open the breaker: by a streak if it is closed, by a failed probe if this job is the one that probes.
create or replace function source_open(p_source text, p_job uuid, p_seconds double precision)
returns void language plpgsql as $$
declare
    v_until timestamptz;
begin
    update sources set paused_until = now() + make_interval(secs => p_seconds), pause_reason = 'breaker',
        probe_by = null, probe_until = null, times_opened = times_opened + 1
    where id = p_source and (probe_by = p_job or source_closed(sources))
    returning paused_until into v_until;
    if found then
        -- the rate limit was held for as long as the probe might take; this pause may be shorter
        if exists (select 1 from pipeline.rate_limits where name = 'source:' || p_source and paused_until > v_until) then
            perform pipeline.resume_rate_limit('source:' || p_source);
        end if;
        perform pipeline.pause_rate_limit('source:' || p_source, v_until, 'breaker');
        perform source_refund(p_source);
    end if;
end $$;

-- Give back what the streak's failures cost; of one that is still being written down, or held, at the next step.
create or replace function source_refund(p_source text) returns void language plpgsql as $$
declare
    v_jobs uuid[];
begin
    with recorded as (
        delete from source_failures f using pipeline.attempts a where f.source_id = p_source and a.job_id = f.job_id
            and a.fence = f.fence and f.job_id = any (array(select j.id from pipeline.jobs j where j.id in (
                select s.job_id from source_failures s where s.source_id = p_source) for no key update skip locked))
        returning f.job_id, a.outcome)
    select array_agg(job_id) into v_jobs from recorded where outcome in ('retried', 'exhausted');
    perform pipeline.refund(v_jobs) where v_jobs is not null;
end $$;

-- Close the breaker: the probe of this job succeeded, or (without a job) an operator says so.
create or replace function source_close(p_source text, p_job uuid default null) returns boolean
language plpgsql as $$
begin
    update sources set failure_streak = 0, paused_until = null, pause_reason = null, probe_by = null,
        probe_until = null, last_success_at = case when p_job is null then last_success_at else now() end
    where id = p_source and (p_job is null or probe_by = p_job);
    if not found then return false; end if;
    perform source_refund(p_source);
    perform pipeline.resume_rate_limit('source:' || p_source);
    return true;
end $$;

-- A probe that ended without an answer (its worker shut down, the job was cancelled): the next job may probe.
create or replace function source_leave(p_source text, p_job uuid) returns void language plpgsql as $$
begin
    update sources set probe_by = null, probe_until = null where id = p_source and probe_by = p_job;
    if found then
        perform pipeline.resume_rate_limit('source:' || p_source);
    end if;
end $$;

-- The source asked for rest, or an operator did. A breaker's own pause is left alone unless an operator says so.
create or replace function source_pause(p_source text, p_until timestamptz, p_reason text) returns boolean
language plpgsql as $$
begin
    update sources set paused_until = p_until, pause_reason = p_reason, probe_by = null, probe_until = null
    where id = p_source and (p_reason = 'operator' or paused_until is null
                             or pause_reason not in ('breaker', 'operator') and paused_until < p_until
                             or pause_reason = 'operator' and paused_until < now());
    if not found then return false; end if;
    if p_reason = 'operator' then
        -- a longer pause of the rate limit would stand otherwise
        perform pipeline.resume_rate_limit('source:' || p_source);
    end if;
    perform pipeline.pause_rate_limit('source:' || p_source, p_until, p_reason);
    return true;
end $$;
