-- The seed's view of the website workflow's jobs.
create or replace view analysis_jobs as
select
    j.id::text                                         as id,
    coalesce(w.url, j.body ->> 'url')                  as url,
    case
        when j.status = 'succeeded' then 'completed'
        when j.status in ('failed', 'cancelled') then j.status
        else s.step
    end                                                as status,
    case when j.status = 'succeeded' then 'completed' else s.step end as "currentStep",
    j.status = 'running'                               as "inProgress",
    j.attempts + j.crashes                             as "retryCount",
    w.page                                             as "extractedInfo",
    w.prompts                                          as prompts,
    w.answer                                           as analysis,
    w.model                                            as model,
    w.tokens_in                                        as "tokensIn",
    w.tokens_out                                       as "tokensOut",
    w.cost_usd                                         as "costUsd",
    j.error_message                                    as "errorMessage",
    j.created_at                                       as "createdAt",
    greatest(j.updated_at, w.updated_at)               as "updatedAt",
    j.completed_at                                     as "completedAt"
from pipeline.jobs j
cross join lateral (
    -- the seed names a waiting job by what was done last: nothing yet is 'not-started'
    select case when j.phase = 'website-analysis' then 'not-started' else j.phase end as step
) s
left join website_analyses w on w.job_id = j.id
where j.workflow = 'website';

-- What a job has read on its way to a page goes when the job ends without one: a replay reads it anew. It runs inside the
-- engine's functions, whose search_path knows no table of ours.
create or replace function website_forget_visit() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
    delete from website_visits where job_id = new.id;
    return null;
end $$;

create or replace trigger forget_visit_at_the_end after update of status on pipeline.jobs
    for each row when (new.status in ('failed', 'cancelled') and new.workflow = 'website') execute function website_forget_visit();
