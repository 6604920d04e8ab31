-- A workflow may submit the same one twice at one event, with other bodies: webhooks to two addresses.
ALTER TABLE pipeline.hooks ADD COLUMN no smallint;
UPDATE pipeline.hooks h SET no = n.no
FROM (SELECT o.workflow, o.event, o.submits, row_number() OVER (PARTITION BY o.workflow ORDER BY o.event, o.submits) AS no FROM pipeline.hooks o) n
WHERE (n.workflow, n.event, n.submits) = (h.workflow, h.event, h.submits);
ALTER TABLE pipeline.hooks DROP CONSTRAINT hooks_pkey;
ALTER TABLE pipeline.hooks ADD CONSTRAINT hooks_pkey PRIMARY KEY (workflow, no);
