-- What a website job has read of a site that asks for a pause between two documents (Crawl-delay), by address. Written
-- when the job must wait for the next one, removed with its page.
create table website_visits (
    job_id    uuid primary key references pipeline.jobs (id) on delete cascade,
    documents jsonb not null
);
