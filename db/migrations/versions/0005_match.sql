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
insert into lanes (name, rate, burst) values ('wikidata', 5, 5) on conflict do nothing;
