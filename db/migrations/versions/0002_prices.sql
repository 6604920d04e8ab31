-- The market's own currency: what "$" and a number alone mean there. Null: unknown, and never a guess.
alter table sources add column currency text,
    add constraint currency_is_a_code check (currency ~ '^[A-Z]{3}$');

-- price_cents is one piece in US cents; original_cents pays for all of them, in the price's own currency.
alter table price_points add column quantity bigint not null default 1,
    add column approximate boolean not null default false,
    add column rate_day date,
    add constraint quantity_is_above_zero check (quantity > 0);

-- Offers whose price could not be used, with the reason. A text at an address is one row however often it is seen.
create table unread_prices (
    id            bigint generated always as identity primary key,
    intake_id     text not null references coin_intakes (id) on delete cascade,
    source_id     text not null references sources (id) on delete cascade,
    title         text not null,
    url           text not null,
    price_text    text not null,
    reason        text not null,
    detail        text not null,
    first_seen_at timestamptz not null default now(),
    last_seen_at  timestamptz not null default now()
);

create unique index unread_once on unread_prices (intake_id, source_id, md5(url || chr(10) || price_text));
create index unread_by_reason on unread_prices (source_id, reason);
