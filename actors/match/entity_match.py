"""The phase: search Wikidata for a task's record, score what is found, keep the ranked list and the decision."""

from __future__ import annotations

from actors.match import store
from actors.match.calls import Calls
from actors.match.config import worker_settings
from actors.match.decide import Decision
from actors.match.finding import Finding
from actors.match.score import Scored
from actors.match.store import Task
from actors.match.wikidata import SlowDown, Wikidata
from pipeline import Done, Job, Snooze


async def entity_match(job: Job) -> Done:
    """Decide on ``body["task_id"]``. A task that is gone or cancelled by now ends the job with nothing kept."""
    task = await store.load_task(job)
    if task is None:
        return Done(result={"decision": None, "why": "the task is gone, or no longer queued"})
    ranked, decision = await judge(job, task)
    kept = ranked[: task.settings.candidates]
    return Done(result=decision.shown(), write=store.keep_decision(task.id, decision, kept))


async def judge(job: Job, task: Task) -> tuple[list[Scored], Decision]:
    """What Wikidata knows by that name, best first, and what it comes to."""
    calls = Calls(job, worker_settings(), task.memory, lambda: store.remember(job, task.id, task.memory))
    wikidata = Wikidata(worker_settings(), {"traceparent": job.traceparent}, calls.begin)
    try:
        return await Finding(wikidata, task.record, task.settings, task.memory).run()
    except SlowDown as error:
        # One was told, all are: this pauses the phase's limit. (No checkpoint, which would count as progress.)
        raise Snooze(error.seconds, "retry_after", str(error), asked=True) from None
