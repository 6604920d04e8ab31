-- What the document workflow keeps: the PDF of each job and, once every page is read, its text.

create table documents (
    job_id       uuid primary key references jobs (id) on delete cascade,
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
    job_id     uuid not null references jobs (id) on delete cascade,
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
