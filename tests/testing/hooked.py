"""A workflow with hooks of every kind; what they are told is the result of their jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pipeline import Backoff, Children, Ends, Job, Permanent, Transient, Workflow

told = Workflow("hooked-told")
again = Workflow("hooked-again")
hooked = Workflow("hooked")


@told.phase
def hear(job: Job) -> dict[str, Any]:
    return dict(job.body)


@again.phase
def repeat(job: Job) -> str:
    # What does not fit is left out.
    result = job.body["result"] or {"state": "much"}
    return f"{job.body['of']}: {result['state']}"


@hooked.phase(max_attempts=2, max_crashes=1, backoff=Backoff((60.0,)))
def act(job: Job) -> Children[Any] | str:
    does = str(job.body["does"])
    if does == "fail":
        raise Permanent("no")
    if does == "try":
        raise Transient("later")
    if does == "sleep":
        job.sleep("nap", timedelta(hours=1))
    if does == "bear":
        return job.spawn(hooked, [{"does": "sleep", "name": "a child"}, {"does": "ok", "name": "another"}])
    return job.finish("x" * 60_000 if does == "much" else does)


@hooked.phase
def gather(job: Job, act: Ends[Any]) -> int:
    return len(act)


hooked.on_success(told, event="success")
hooked.on_success(told, event="the same")
hooked.on_failure(told, event="failure")
hooked.on_cancel(told, event="cancel")
# A hook's own job has hooks.
told.on_success(again, of="hook")
