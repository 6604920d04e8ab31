"""A workflow that tells two addresses how its jobs end. Loaded by the workers of tests/flow/test_webhooks.py."""

from __future__ import annotations

import os

from pipeline import Job, Permanent, Workflow
from pipeline.webhooks import webhook

RECEIVER = os.environ.get("TEST_RECEIVER", "https://example.org/hooks")

audited = Workflow("audited")


@audited.phase
def look(job: Job) -> dict[str, int]:
    if job.body.get("fail"):
        raise Permanent("it cannot be done")
    return {"seen": 3}


audited.on_success(webhook, url=f"{RECEIVER}/one", team="sales")
audited.on_success(webhook, url=f"{RECEIVER}/two", secret="partner")
audited.on_failure(webhook, url=f"{RECEIVER}/one", type="audit.broken")
