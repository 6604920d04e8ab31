"""Parents whose children do what their bodies say: succeed, fail, or sleep first: for an hour, or for a minute (later)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pipeline import Children, Ends, Job, Permanent, Workflow

child = Workflow("kit-child")


@child.phase
def live(job: Job) -> str:
    does: str = job.body["does"]
    if does not in ("fail", "ok"):
        job.sleep("nap", timedelta(hours=1) if does == "sleep" else timedelta(minutes=1))
    if does.startswith("fail"):
        raise Permanent("no")
    return does


parent = Workflow("kit-parent")


@parent.phase
def bear(job: Job) -> Children[str]:
    if job.body.get("again"):
        return job.spawn(parent, [{"children": job.body["children"]}])
    return job.spawn(
        child, [{"does": does} for does in job.body["children"]], policy=job.body.get("policy", "best_effort")
    )


@parent.phase
async def gather(job: Job, bear: Ends[Any]) -> list[list[Any]]:
    ends = [end async for end in bear]
    return [[end.status, end.result if end.ok else end.error] for end in ends]
