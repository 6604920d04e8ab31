"""The phase: search Wikidata for a task's record, score what is found, keep the ranked list and the decision."""

from __future__ import annotations

import asyncio

from actors.match import store
from actors.match.calls import Calls
from actors.match.config import RATE_LIMIT, worker_settings
from actors.match.decide import decide
from actors.match.records import Candidate
from actors.match.score import rank
from actors.match.store import Task
from actors.match.wikidata import SlowDown, Wikidata
from pipeline import Done, Job, Snooze, pause_rate_limit


async def entity_match(job: Job) -> Done:
    """Decide on ``body["task_id"]``. A task that is gone or cancelled by now ends the job with nothing kept."""
    task = await store.load_task(job)
    if task is None:
        return Done(result={"decision": None, "why": "the task is gone, or no longer queued"})
    ranked = rank(task.record, await candidates(job, task))[: task.settings.candidates]
    decision = decide(ranked, task.settings)
    return Done(result=decision.shown(), write=store.keep_decision(task.id, decision, ranked))


async def candidates(job: Job, task: Task) -> list[Candidate]:
    """What Wikidata knows by that name in the project's languages: one search each, and one call for all found."""
    if not task.record.name:
        return []
    languages, found = task.settings.languages, dict(task.found)
    missing = [language for language in languages if language not in found]
    calls = Calls(job, worker_settings(), len(missing) + 1, lambda: store.remember(job, task.id, found))
    wikidata = Wikidata(worker_settings(), {"traceparent": job.traceparent})
    try:
        for language in missing:
            await calls.begin()
            found[language] = await wikidata.search(task.record.name, language, task.settings.candidates)
        ids = merged([found[language] for language in languages], task.settings.candidates)
        return await _entities(calls, wikidata, ids, languages) if ids else []
    except SlowDown as error:
        # One was told, all are: the rate limit's jobs wait at the gate, and nobody is charged for it. (No checkpoint of
        # the job, which would count as progress.)
        await asyncio.to_thread(pause_rate_limit, RATE_LIMIT, error.seconds, "retry_after")
        raise Snooze(error.seconds, "retry_after", str(error), asked=True) from None


async def _entities(calls: Calls, wikidata: Wikidata, ids: list[str], languages: tuple[str, ...]) -> list[Candidate]:
    await calls.begin()
    return await wikidata.entities(ids, languages)


def merged(lists: list[list[str]], most: int) -> list[str]:
    """The first of each list, then the second of each, and so on; no entity twice."""
    longest = max(map(len, lists), default=0)
    in_turn = [found[place] for place in range(longest) for found in lists if place < len(found)]
    return list(dict.fromkeys(in_turn))[:most]
