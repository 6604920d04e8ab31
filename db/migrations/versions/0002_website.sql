-- What the website workflow keeps about each job.

create table website_analyses (
    job_id     uuid primary key references jobs (id) on delete cascade,
    url        text,
    final_url  text,
    page       jsonb,
    prompts    jsonb,
    answer     jsonb,
    model      text,
    tokens_in  integer,
    tokens_out integer,
    cost_usd   numeric,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint tokens_are_not_negative check (tokens_in >= 0 and tokens_out >= 0),
    constraint cost_is_not_negative check (cost_usd >= 0),
    constraint answer_names_its_model check (answer is null or model is not null)
);
