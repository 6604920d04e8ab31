-- An operator gives up a failed job: it leaves the dead letters and ends as cancelled, with the reason.
CREATE OR REPLACE FUNCTION pipeline.discard(p_id uuid, p_reason text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE pipeline.jobs SET status = 'cancelled', updated_at = now(), send = send + 1,
        error_message = left(p_reason || ' (was: ' || coalesce(error_message, '') || ')', 20000)
    WHERE id = p_id AND status = 'failed';
    RETURN FOUND;
END $$;
