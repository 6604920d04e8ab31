-- The scrape workflow: coins to price, marketplaces to ask, what they answered, what it is worth.
-- Ids are text throughout, as in the view scrape_jobs, so that all of them join.

create table sources (
    id                    text primary key default pipeline_new_id()::text,
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
    constraint id_fits_a_lane check (id ~ '^[A-Za-z0-9._-]{1,60}$'),
    constraint base_url_is_http check (base_url ~ '^https?://' and length(base_url) <= 1000),
    constraint rate_is_above_zero check (rate_limit_per_minute > 0),
    constraint streak_is_a_count check (failure_streak >= 0),
    constraint a_pause_has_its_reason check ((paused_until is null) = (pause_reason is null)),
    constraint probe_only_while_open check (probe_by is null or pause_reason = 'breaker')
);

-- Failed calls of the streak that is going on: each cost its job an execution, which is given back if the
-- streak opens the breaker.
create table source_failures (
    source_id text not null references sources (id) on delete cascade,
    job_id    uuid not null,
    fence     bigint not null,
    primary key (source_id, job_id, fence)
);

create table coin_intakes (
    id           text primary key default pipeline_new_id()::text,
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
