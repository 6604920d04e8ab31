-- Ask to be told when these jobs have ended, on channel pipeline_ended, with the job's id. Whoever asks must LISTEN before.
-- Answers: 'noted'; 'ended', there is nothing to wait for; 'locked', another transaction holds the row, perhaps the one that
-- ends the job: ask again soon; 'unknown', there is no such job.
-- No end is missed: it deletes the row that is marked here (pipeline.leave_outbox), so one of the two has the row first. The
-- end waits for the mark, which is over in no time and waits for nobody, and sees it; the mark finds the row locked or gone.
CREATE OR REPLACE FUNCTION pipeline.await_ends(p_jobs uuid[])
RETURNS TABLE (job_id uuid, answer text) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_noted uuid[];
BEGIN
    WITH free AS MATERIALIZED (
        SELECT o.job_id, o.awaited FROM pipeline.outbox o WHERE o.job_id = ANY (p_jobs) FOR NO KEY UPDATE SKIP LOCKED
    ), marked AS (
        UPDATE pipeline.outbox o SET awaited = true FROM free f WHERE o.job_id = f.job_id AND NOT f.awaited
    )
    SELECT array_agg(f.job_id) INTO v_noted FROM free f;
    -- A statement of its own: it also sees what committed meanwhile.
    RETURN QUERY
    SELECT a.id, CASE WHEN j.id IS NULL THEN 'unknown' WHEN j.completed_at IS NOT NULL THEN 'ended'
                      WHEN a.id = ANY (v_noted) THEN 'noted' ELSE 'locked' END
    FROM unnest(p_jobs) AS a(id) LEFT JOIN pipeline.jobs j ON j.id = a.id;
END $$;

-- These jobs have ended: nothing is to be sent any more, and whoever waits for one of them is told when this commits. A NOTIFY
-- makes commits wait for one another, so there is none for a job that nobody waits for. Private to the transitions;
-- pipeline.complete does the same in its one statement.
CREATE OR REPLACE FUNCTION pipeline.leave_outbox(p_jobs uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_awaited uuid[];
BEGIN
    WITH ended AS (
        DELETE FROM pipeline.outbox WHERE job_id = ANY (p_jobs) RETURNING job_id, awaited
    )
    SELECT array_agg(e.job_id) INTO v_awaited FROM ended e WHERE e.awaited;
    PERFORM pg_notify('pipeline_ended', a.id::text) FROM unnest(v_awaited) AS a(id);
END $$;
