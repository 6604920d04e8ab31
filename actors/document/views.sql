-- The seed's queue of documents. 1 EN_ATTENTE, 2 EN_TRAITEMENT, 3 COMPLETE (its PDF is here), 4 OCR_PROCESSING,
-- 5 EXTRACTION_COMPLETE, 6 ERREUR (failed, or cancelled). Errors of the two phases stay apart, and both are kept.
drop view if exists extraction_queue;
create view extraction_queue as
select
    j.id::text                                           as id,
    coalesce(d.number, j.body ->> 'document_number')     as document_number,
    s.status_id                                          as status_id,
    (array['EN_ATTENTE', 'EN_TRAITEMENT', 'COMPLETE', 'OCR_PROCESSING', 'EXTRACTION_COMPLETE', 'ERREUR'])[s.status_id]
                                                         as status,
    d.title, d.pdf_key, d.sha256, d.bytes,
    coalesce(d.pages, case when o.here then j.progress_total end) as pages,
    coalesce(d.pages, case when o.here then j.progress_done end)  as pages_done,
    d.text, d.boosted_text, d.engine as ocr_engine, d.confidence as ocr_confidence,
    -- pages whose text may be wrong, each with the reason
    d.doubts as ocr_doubts, jsonb_array_length(d.doubts) as ocr_doubtful_pages,
    e.error                                              as error_message,
    oe.error                                             as ocr_error,
    -- the seed counts an attempt when it begins
    case when o.here then j.attempts + (j.status in ('running', 'succeeded'))::integer else 0 end as ocr_attempts,
    coalesce(case when o.here then j.max_attempts end, p.max_attempts) as ocr_max_attempts,
    case when o.here then j.crashes else 0 end           as ocr_crashes,
    case when o.here then j.locked_by end                as ocr_worker_id,
    coalesce(case when o.here then j.locked_at end, l.started_at) as ocr_started_at,
    j.created_at, greatest(j.updated_at, d.updated_at) as updated_at, j.completed_at
from pipeline.jobs j
cross join lateral (select j.phase = 'ocr' as here) o
cross join lateral (
    select case when j.status = 'succeeded' then 5
                when j.status in ('failed', 'cancelled') then 6
                else 1 + (j.status = 'running')::integer + 2 * o.here::integer end as status_id
) s
left join documents d on d.job_id = j.id
left join pipeline.phases p on p.workflow = 'document' and p.phase = 'ocr'
left join lateral (
    select a.error from pipeline.attempts a where a.job_id = j.id and a.phase = 'registre-extraction' and a.error is not null
    order by a.fence desc limit 1
) e on true
left join lateral (
    select a.error from pipeline.attempts a where a.job_id = j.id and a.phase = 'ocr' and a.error is not null
    order by a.fence desc limit 1
) oe on true
left join lateral (
    select a.started_at from pipeline.attempts a where a.job_id = j.id and a.phase = 'ocr' and a.started_at is not null
    order by a.fence desc limit 1
) l on true
where j.workflow = 'document';

-- By hand: INSERT enqueues; the stale reset (4 to 3) goes through the guarded function; a claim is refused.
create or replace function extraction_queue_write() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        new.id := pipeline.submit('document', jsonb_build_object('document_number', new.document_number));
        select q.* into new from extraction_queue q where q.id = new.id;
        return new;
    end if;
    if new is not distinct from old then
        return new;
    end if;
    if old.status_id = 4 and new.status_id = 3 then
        -- no row is counted as updated if the job has ended or moved on meanwhile
        if pipeline.reset(old.id::uuid, 'reset by hand in extraction_queue') <> 'reset' then
            return null;
        end if;
        return new;
    end if;
    if (old.status_id, new.status_id) in ((1, 2), (3, 4)) then
        raise exception using errcode = 'PL040',
            message = format('document %s (%s) cannot be claimed by hand', old.document_number, old.id),
            hint = 'workers claim documents by themselves: start one with "dramatiq pipeline.actors"';
    end if;
    raise exception using errcode = 'PL041',
        message = format('document %s (%s): the only change by hand is the reset from status_id 4 to 3',
                         old.document_number, old.id),
        hint = 'SELECT pipeline.replay(id) starts a failed job again, SELECT pipeline.cancel(id) cancels one';
end $$;

create trigger extraction_queue_by_hand instead of insert or update on extraction_queue
    for each row execute function extraction_queue_write();

-- Pages that were read go with a cancel. It runs inside pipeline.cancel, whose search_path knows no table of ours.
create or replace function document_forget_pages() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
    delete from document_pages where job_id = new.id;
    return null;
end $$;

create or replace trigger forget_pages_with_a_cancel after update of status on pipeline.jobs
    for each row when (new.status = 'cancelled' and new.workflow = 'document') execute function document_forget_pages();
