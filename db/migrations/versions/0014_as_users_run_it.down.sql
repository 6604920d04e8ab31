-- Nobody would let those through who wait for a rate limit.
UPDATE outbox SET due_at = NULL WHERE due_at = 'infinity';
DROP INDEX outbox_lane_sent, outbox_lane, turns_of_lane;
CREATE INDEX outbox_lane ON outbox (lane, seq) WHERE lane IS NOT NULL AND sent_at IS NULL;
DROP VIEW maintenance_leader;
DROP TABLE batch_ends;
DROP VIEW IF EXISTS running_jobs;
ALTER TABLE jobs DROP COLUMN waits;
ALTER TABLE workers DROP COLUMN unstarted, DROP COLUMN stuck, DROP COLUMN leaving;
