-- A database of the first generation (its last version, 0014) becomes one of the second: the engine's tables leave
-- `public` for the schema `pipeline`, with their rows, and get the names of today. Workers are stopped meanwhile.
-- What the application laid over them (views, triggers) is dropped by name and made again by the application's own
-- migrations. No CASCADE anywhere: what somebody else built upon our objects is theirs, and PostgreSQL names it.

DROP VIEW IF EXISTS public.extraction_queue, public.scrape_jobs, public.analysis_jobs;
DROP TRIGGER IF EXISTS match_entries_added ON public.dataset_entries;
DROP TRIGGER IF EXISTS match_task_before ON public.tasks;
DROP TRIGGER IF EXISTS match_tasks_changed ON public.tasks;
DROP TRIGGER IF EXISTS match_tasks_gone ON public.tasks;
DROP TRIGGER IF EXISTS match_project_leaves ON public.projects;
DROP TRIGGER IF EXISTS match_project_gone ON public.projects;
DROP TRIGGER IF EXISTS match_job_ended ON public.jobs;
DROP TRIGGER IF EXISTS forget_pages_with_a_cancel ON public.jobs;
DROP TRIGGER IF EXISTS sources_rate ON public.sources;
DROP TRIGGER IF EXISTS workers_keep_counters ON public.workers;
DROP VIEW IF EXISTS public.running_jobs, public.counters, public.processors;

DO $$
DECLARE
    v_function text;
BEGIN
    FOR v_function IN SELECT p.oid::regprocedure::text FROM pg_proc p JOIN public.pipeline_functions f
        ON f.signature = format('%I(%s)', p.proname, oidvectortypes(p.proargtypes))
        WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f'
    LOOP
        EXECUTE format('DROP FUNCTION %s', v_function);
    END LOOP;
END $$;
DROP TABLE public.pipeline_functions, public.pipeline_schema, public.alembic_version;

ALTER FUNCTION public.pipeline_new_id() RENAME TO new_id;
ALTER FUNCTION public.new_id() SET SCHEMA pipeline;
ALTER TABLE public.phases SET SCHEMA pipeline;
ALTER TABLE public.batches SET SCHEMA pipeline;
ALTER TABLE public.batch_ends SET SCHEMA pipeline;
ALTER TABLE public.jobs SET SCHEMA pipeline;
ALTER TABLE public.outbox SET SCHEMA pipeline;
ALTER TABLE public.attempts SET SCHEMA pipeline;
ALTER TABLE public.workers SET SCHEMA pipeline;
ALTER TABLE public.lanes SET SCHEMA pipeline;
ALTER TABLE public.turns SET SCHEMA pipeline;
ALTER TABLE public.rollups SET SCHEMA pipeline;
ALTER TABLE public.rollup_quarters SET SCHEMA pipeline;
ALTER TABLE public.counter_totals SET SCHEMA pipeline;
ALTER VIEW public.relay_seat SET SCHEMA pipeline;
ALTER VIEW public.maintenance_leader SET SCHEMA pipeline;

ALTER VIEW pipeline.relay_seat RENAME TO relay_leader;
ALTER TABLE pipeline.lanes RENAME TO rate_limits;
ALTER TABLE pipeline.rate_limits RENAME CONSTRAINT lanes_pkey TO rate_limits_pkey;
ALTER TABLE pipeline.turns RENAME TO permits;
ALTER TABLE pipeline.permits RENAME COLUMN lane TO rate_limit;
ALTER TABLE pipeline.permits RENAME CONSTRAINT turns_pkey TO permits_pkey;
ALTER TABLE pipeline.permits RENAME CONSTRAINT turns_job_id_fkey TO permits_job_id_fkey;
ALTER INDEX pipeline.turns_of_lane RENAME TO permits_of_rate_limit;
ALTER TABLE pipeline.outbox RENAME COLUMN lane TO rate_limit;
ALTER INDEX pipeline.outbox_lane RENAME TO outbox_rate_limit;
ALTER INDEX pipeline.outbox_lane_sent RENAME TO outbox_rate_limit_sent;
ALTER TABLE pipeline.jobs RENAME COLUMN lane TO rate_limit;
ALTER TABLE pipeline.jobs RENAME COLUMN carrier TO message_phase_id;
ALTER TABLE pipeline.jobs RENAME CONSTRAINT only_a_running_job_is_carried TO continued_only_while_running;
ALTER TABLE pipeline.jobs VALIDATE CONSTRAINT continued_only_while_running;
ALTER TABLE pipeline.workers RENAME COLUMN deaf TO not_consuming;
ALTER TABLE pipeline.workers DROP COLUMN missing_since;

ALTER TABLE pipeline.attempts DROP CONSTRAINT outcome_is_known;
UPDATE pipeline.attempts SET outcome = CASE outcome WHEN 'parked' THEN 'snoozed' ELSE 'released' END
WHERE outcome IN ('parked', 'handed_back');
ALTER TABLE pipeline.attempts ADD CONSTRAINT outcome_is_known
    CHECK (outcome IN ('succeeded', 'retried', 'exhausted', 'failed', 'snoozed',
        'released', 'crashed', 'stale', 'poisoned', 'cancelled', 'undeliverable'));
UPDATE pipeline.jobs SET wait_reason = 'snoozed' WHERE wait_reason = 'parked' AND completed_at IS NULL;
UPDATE pipeline.outbox SET reason = 'snoozed' WHERE reason = 'parked';
