-- The phase in whose queue the message of a running job is, if the job went on to a later phase with it.
ALTER TABLE jobs ADD COLUMN carrier integer;
ALTER TABLE jobs ADD CONSTRAINT only_a_running_job_is_carried CHECK (carrier IS NULL OR status = 'running') NOT VALID;
