-- How many messages of a phase's queue should be unacknowledged: those of its running jobs, unless another queue's
-- message brought them there (see pipeline_complete), and those of jobs that its messages carried further.
CREATE OR REPLACE FUNCTION pipeline_in_hand(p_phase phases) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT count(*)::integer FROM jobs j
    WHERE j.status = 'running' AND j.workflow = p_phase.workflow
      AND CASE WHEN j.carrier IS NULL THEN j.phase = p_phase.phase ELSE j.carrier = p_phase.id END
$$;
