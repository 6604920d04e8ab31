-- What a change of projects, dataset_entries and tasks means, whoever makes it: the API, or a person with psql.
--   a new entry             → a task for it
--   tasks.status = QUEUED   → one job a task, in one batch a project; those of one statement are submitted together
--   … CANCELLED, NEW, FAILED → the job of a queued task is cancelled
--   a task or project gone  → its jobs are gone with it, also while they run
-- Rows are locked in the order project, task, job, batch; the one step that goes the other way does not wait.
-- Triggers may run inside the engine's functions, whose search_path knows no table of ours: each sets its own.

create or replace function match_entries_added() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
    insert into tasks (project_id, dataset_entry_id) select e.project_id, e.id from added e order by e.id;
    return null;
end $$;

create or replace trigger match_entries_added after insert on dataset_entries
    referencing new table as added for each statement execute function match_entries_added();

-- A new generation is a new job. A task that is queued already keeps the job it has, unless that is over.
create or replace function match_task_before() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        if new.status <> 'NEW' then
            raise exception using errcode = 'PL011', message = format('a task begins as NEW, not %s', new.status),
                hint = 'insert it first, then UPDATE tasks SET status = ''QUEUED''';
        end if;
        return new;
    end if;
    new.updated_at := now();
    if new.status = 'QUEUED' and (old.status <> 'QUEUED' or not public.match_lives(old.id, old.generation)) then
        new.generation := old.generation + 1;
        new.decision := null; new.qid := null; new.score := null; new.why := null;
        new.candidates := null; new.found := null;
        new.error_message := null; new.completed_at := null;
    end if;
    return new;
end $$;

create or replace function match_lives(p_task bigint, p_generation integer) returns boolean
language sql stable as $$
    select exists (select 1 from pipeline.keys k join pipeline.jobs j on j.id = k.job_id
                   where k.workflow = 'match' and k.key = p_task || ':' || p_generation and j.completed_at is null)
$$;

create or replace trigger match_task_before before insert or update on tasks for each row
    when (current_setting('pipeline.task_follows_job', true) is distinct from 'yes')
    execute function match_task_before();

-- Statistics lag behind a table that grew by thousands of rows a moment ago: the indexes are right all the same.
create or replace function match_tasks_changed() returns trigger
language plpgsql set search_path = public, pg_temp set enable_seqscan = off as $$
declare
    v_project bigint;
    v_batch uuid;
    v_keys text[];
    v_jobs uuid[];
begin
    for v_project in
        select distinct n.project_id from changed n join before o on o.id = n.id
        where n.status = 'QUEUED' and n.generation > o.generation order by 1
    loop
        v_batch := match_batch(v_project);
        perform match_submit(v_batch, c.bodies, c.keys) from (
            select array_agg(q.body order by q.id) as bodies, array_agg(q.key order by q.id) as keys from (
                select n.id, n.id || ':' || n.generation as key,
                       (row_number() over (order by n.id) - 1) / 1000 as chunk,
                       jsonb_build_object('project_id', n.project_id, 'task_id', n.id,
                                          'dataset_entry_id', n.dataset_entry_id) as body
                from changed n join before o on o.id = n.id
                where n.project_id = v_project and n.status = 'QUEUED' and n.generation > o.generation) q
            group by q.chunk order by q.chunk) c;
        update projects set status = 'MATCHING', updated_at = now(), completed_at = null, counts = null
        where id = v_project and status <> 'MATCHING';
        perform pipeline.seal_batch(v_batch)
        where not exists (select 1 from projects p where p.id = v_project and p.batch_id = v_batch);
    end loop;
    -- All of them are locked before the first is cancelled: a cancel locks their batch, which others lock last.
    with pairs as materialized (
        select o.id || ':' || o.generation as key, o.status as was, n.status as is_now
        from before o join changed n on n.id = o.id
    ) select array_agg(p.key) into v_keys from pairs p
    where p.was = 'QUEUED' and p.is_now in ('CANCELLED', 'NEW', 'FAILED');
    select array_agg(h.id) into v_jobs from (
        select j.id from pipeline.jobs j
        where j.id = any (array(select k.job_id from pipeline.keys k where k.workflow = 'match' and k.key = any (v_keys)))
        and j.completed_at is null order by j.id for update) h;
    perform pipeline.cancel_many(v_jobs, 'its task was set to another status');
    return null;
end $$;

-- One batch for the lot: the project's own while its fan-out runs, otherwise one of this statement's.
create or replace function match_batch(p_project bigint) returns uuid language sql as $$
    select coalesce(
        (select b.id from projects p join pipeline.batches b on b.id = p.batch_id where p.id = p_project and not b.sealed),
        pipeline.open_batch('match-finish', jsonb_build_object('project_id', p_project)))
$$;

create or replace function match_submit(p_batch uuid, p_bodies jsonb[], p_keys text[]) returns bigint
language sql as $$
    select count(*) from pipeline.submit_many('match', p_bodies, p_batch => p_batch, p_keys => p_keys,
        p_traceparent => nullif(current_setting('pipeline.traceparent', true), ''))
$$;

create or replace trigger match_tasks_changed after update on tasks
    referencing old table as before new table as changed for each statement
    when (current_setting('pipeline.task_follows_job', true) is distinct from 'yes')
    execute function match_tasks_changed();

-- A job that failed, was cancelled or is tried again takes its task along. If somebody changes the task at
-- this moment, theirs is the word that counts.
create or replace function match_job_ended() returns trigger language plpgsql set search_path = public, pg_temp as $$
declare
    v_task bigint := split_part(new.idempotency_key, ':', 1)::bigint;
begin
    perform set_config('pipeline.task_follows_job', 'yes', true);
    update tasks t set updated_at = now(), error_message = new.error_message, completed_at = new.completed_at,
        status = case new.status when 'failed' then 'FAILED' when 'cancelled' then 'CANCELLED' else 'QUEUED' end
    where t.id = (
        select l.id from tasks l where l.id = v_task and l.generation::text = split_part(new.idempotency_key, ':', 2)
            and l.status = case when new.status in ('failed', 'cancelled') then 'QUEUED' else 'FAILED' end
        for update skip locked);
    perform set_config('pipeline.task_follows_job', '', true);
    return null;
end $$;

create or replace trigger match_job_ended after update of status on pipeline.jobs for each row
    when (new.workflow = 'match' and new.status is distinct from old.status
          and (new.status in ('failed', 'cancelled') or old.status = 'failed')
          and new.idempotency_key ~ '^[0-9]{1,18}:[0-9]{1,9}$')
    execute function match_job_ended();

create or replace function match_tasks_gone() returns trigger
language plpgsql set search_path = public, pg_temp set enable_seqscan = off as $$
declare
    v_keys text[] := (select array_agg(g.id || ':' || n) from gone g cross join generate_series(1, g.generation) n);
begin
    perform pipeline.delete(array_agg(k.job_id)) from pipeline.keys k
    where k.workflow = 'match' and k.key = any (v_keys) having count(*) > 0;
    return null;
end $$;

create or replace trigger match_tasks_gone after delete on tasks
    referencing old table as gone for each statement execute function match_tasks_gone();

-- The fan-out goes first: it holds its own job while it waits for tasks.
create or replace function match_project_leaves() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
    perform pipeline.delete(array_agg(k.job_id)) from generate_series(1, old.round) n
        join pipeline.keys k on k.workflow = 'match-fanout' and k.key = old.id || ':' || n
    having count(*) > 0;
    return old;
end $$;

create or replace trigger match_project_leaves before delete on projects
    for each row execute function match_project_leaves();

-- Its tasks and their jobs are gone by now: what is left are the batches and what they called back.
create or replace function match_project_gone() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
    perform pipeline.delete(array_agg(b.callback_job)) from pipeline.batches b
    where b.callback_workflow = 'match-finish' and b.callback_body ->> 'project_id' = old.id::text
    having count(b.callback_job) > 0;
    delete from pipeline.batches b
    where b.callback_workflow = 'match-finish' and b.callback_body ->> 'project_id' = old.id::text;
    return null;
end $$;

create or replace trigger match_project_gone after delete on projects
    for each row execute function match_project_gone();
