-- The tables of the four workflows, in the application's own schema.

-- What the website workflow keeps about each job.

create table website_analyses (
    job_id     uuid primary key references pipeline.jobs (id) on delete cascade,
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

-- What the document workflow keeps: the PDF of each job and, once every page is read, its text.

create table documents (
    job_id       uuid primary key references pipeline.jobs (id) on delete cascade,
    number       text not null,
    title        text not null default '',
    pdf_key      text not null,
    sha256       text not null,
    bytes        bigint not null,
    pages        integer,
    text         text,
    boosted_text text,
    engine       text,
    confidence   double precision,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    constraint sha256_is_hexadecimal check (sha256 ~ '^[0-9a-f]{64}$'),
    constraint size_is_a_count check (bytes >= 0 and pages > 0),
    constraint text_comes_whole check ((text is null) = (boosted_text is null) and (text is null) = (pages is null))
);
create index documents_number on documents (number);

-- Checkpoints of the ocr phase, one a page as it is read. They count once the phase has completed, and go with a
-- cancel; fence says which attempt read the page.
create table document_pages (
    job_id     uuid not null references pipeline.jobs (id) on delete cascade,
    page       integer not null,
    text       text not null,
    boosted    text not null,
    confidence double precision,
    engine     text not null,
    fence      bigint not null,
    read_at    timestamptz not null default now(),
    constraint document_pages_pkey primary key (job_id, page),
    constraint pages_count_from_one check (page > 0)
);

-- Projects, their records, and one task a record. A task's job is found by its key, "<task>:<generation>".

create table projects (
    id           bigint generated always as identity primary key,
    name         text not null,
    settings     jsonb not null default '{}',
    status       text not null default 'NEW',
    round        integer not null default 0,
    batch_id     uuid,
    counts       jsonb,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    completed_at timestamptz,
    constraint project_status_is_known check (status in ('NEW', 'MATCHING', 'COMPLETED', 'CANCELLED')),
    constraint project_name_is_short check (length(name) between 1 and 200),
    constraint settings_are_an_object check (jsonb_typeof(settings) = 'object')
);

-- The first foreign key of tasks is the one to projects: deleting a project then takes its tasks in one statement.
create table dataset_entries (
    id          bigint generated always as identity primary key,
    project_id  bigint not null,
    external_id text,
    name        text not null,
    data        jsonb not null default '{}',
    created_at  timestamptz not null default now(),
    constraint entry_name_is_short check (length(name) between 1 and 500),
    constraint external_id_is_short check (length(external_id) between 1 and 200),
    constraint data_is_an_object check (jsonb_typeof(data) = 'object')
);

create table tasks (
    id               bigint generated always as identity primary key,
    project_id       bigint not null references projects (id) on delete cascade,
    dataset_entry_id bigint not null unique references dataset_entries (id) on delete cascade,
    status           text not null default 'NEW',
    generation       integer not null default 0,
    round            integer not null default 0,
    decision         text,
    qid              text,
    score            double precision,
    candidates       jsonb,
    found            jsonb,
    error_message    text,
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    completed_at     timestamptz,
    constraint task_status_is_known check (status in ('NEW', 'QUEUED', 'COMPLETED', 'FAILED', 'CANCELLED')),
    constraint decision_is_known check (decision in ('matched', 'ambiguous', 'none')),
    constraint a_match_names_its_entity check ((decision = 'matched') = (qid is not null) or decision is null)
) with (fillfactor = 80);

alter table dataset_entries
    add constraint dataset_entries_project_id_fkey foreign key (project_id) references projects (id) on delete cascade;

create unique index dataset_entries_external on dataset_entries (project_id, external_id) where external_id is not null;
create index dataset_entries_of_project on dataset_entries (project_id, id);
create index tasks_of_project on tasks (project_id, id);
create index tasks_by_status on tasks (project_id, status, decision);

-- Wikidata's own limit for strangers holds until somebody sets another.
select pipeline.set_rate_limit('wikidata', 5, 5) where not exists (select 1 from pipeline.rate_limits where name = 'wikidata');

-- The scrape workflow: coins to price, marketplaces to ask, what they answered, what it is worth.
-- Ids are text throughout, as in the view scrape_jobs, so that all of them join.

create table sources (
    id                    text primary key default pipeline.new_id()::text,
    name                  text not null unique,
    adapter               text not null,
    base_url              text not null,
    enabled               boolean not null default true,
    rate_limit_per_minute double precision not null default 60,
    failure_streak        integer not null default 0,
    last_success_at       timestamptz,
    last_failure_at       timestamptz,
    last_error            text,
    paused_until          timestamptz,
    pause_reason          text,
    probe_by              uuid,
    probe_until           timestamptz,
    times_opened          integer not null default 0,
    probes                integer not null default 0,
    created_at            timestamptz not null default now(),
    constraint id_fits_a_rate_limit check (id ~ '^[A-Za-z0-9._-]{1,60}$'),
    constraint base_url_is_http check (base_url ~ '^https?://' and length(base_url) <= 1000),
    constraint rate_is_above_zero check (rate_limit_per_minute > 0),
    constraint streak_is_a_count check (failure_streak >= 0),
    constraint a_pause_has_its_reason check ((paused_until is null) = (pause_reason is null)),
    constraint probe_only_while_open check (probe_by is null or pause_reason = 'breaker')
);

-- Failed calls of the current streak: each cost its job an execution, which is given back if the
-- streak opens the breaker.
create table source_failures (
    source_id text not null references sources (id) on delete cascade,
    job_id    uuid not null,
    fence     bigint not null,
    primary key (source_id, job_id, fence)
);

create table coin_intakes (
    id           text primary key default pipeline.new_id()::text,
    year         integer,
    mintmark     text,
    denomination text,
    series       text,
    title        text not null,
    batch_id     uuid,
    created_at   timestamptz not null default now(),
    constraint year_is_a_year check (year between -1000 and 3000),
    constraint texts_are_short check (length(title) <= 300 and length(series) <= 200 and length(denomination) <= 100
                                      and length(mintmark) <= 20)
);

create table price_points (
    id               bigint generated always as identity primary key,
    intake_id        text not null references coin_intakes (id) on delete cascade,
    source_id        text not null references sources (id) on delete cascade,
    dedupe_key       text not null,
    external_id      text,
    title            text not null,
    url              text not null,
    price_cents      bigint not null,
    original_cents   bigint not null,
    currency         text not null,
    price_type       text not null,
    observed_at      timestamptz not null,
    match_strength   double precision not null,
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    constraint one_row_a_listing unique (intake_id, source_id, dedupe_key),
    constraint price_is_above_zero check (price_cents > 0 and original_cents > 0),
    constraint type_is_known check (price_type in ('sold', 'ask', 'bid')),
    constraint strength_is_a_share check (match_strength between 0 and 1)
);

create table valuations (
    id            bigint generated always as identity primary key,
    intake_id     text not null references coin_intakes (id) on delete cascade,
    low_cents     bigint,
    mid_cents     bigint,
    high_cents    bigint,
    currency      text not null,
    confidence    double precision not null,
    points_used   integer not null,
    points_seen   integer not null,
    outliers      integer not null,
    points_by_type jsonb not null,
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now(),
    constraint one_valuation_an_intake unique (intake_id),
    constraint in_order check (low_cents <= mid_cents and mid_cents <= high_cents),
    constraint confidence_is_a_share check (confidence between 0 and 1)
);
