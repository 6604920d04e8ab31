"""The phase: search Wikidata for a task's record, score what is found, keep the ranked list and the decision."""

from __future__ import annotations

from actors.match import store
from actors.match.config import LANE, worker_settings
from actors.match.decide import ProjectSettings, decide
from actors.match.records import Candidate, Record
from actors.match.score import rank
from actors.match.wikidata import SlowDown, Wikidata
from pipeline.flow.job import Job
from pipeline.rules.errors import Wait
from pipeline.rules.outcome import Done

_PAUSE = "select pipeline_pause_lane(:lane, now() + make_interval(secs => :seconds), 'retry_after')"


def entity_match(job: Job) -> Done:
    """Decide on ``body["task_id"]``. A task that is gone or cancelled by now ends the job with nothing kept."""
    task = store.load_task(job)
    if task is None:
        return Done(result={"decision": None, "why": "the task is gone, or no longer queued"})
    record, settings = task
    ranked = rank(record, candidates(job, record, settings))[: settings.candidates]
    decision = decide(ranked, settings)
    return Done(result=decision.shown(), write=store.keep_decision(job.body["task_id"], decision, ranked))


def candidates(job: Job, record: Record, settings: ProjectSettings) -> list[Candidate]:
    """What Wikidata knows by that name in the project's languages: one search each, and one call for all found."""
    if not record.name:
        return []
    job.turn(LANE, calls=len(settings.languages) + 1)
    wikidata = Wikidata(worker_settings(), {"traceparent": job.traceparent})
    try:
        found = [wikidata.search(record.name, language, settings.candidates) for language in settings.languages]
        ids = merged(found, settings.candidates)
        return wikidata.entities(ids, settings.languages) if ids else []
    except SlowDown as error:
        # One was told, all are: the lane's jobs wait at the gate, and nobody is charged for it.
        job.keep(_PAUSE, lane=LANE, seconds=error.seconds)
        raise Wait(error.seconds, "retry_after", str(error)) from None


def merged(lists: list[list[str]], most: int) -> list[str]:
    """The first of each list, then the second of each, and so on; no entity twice."""
    longest = max(map(len, lists), default=0)
    in_turn = [found[place] for place in range(longest) for found in lists if place < len(found)]
    return list(dict.fromkeys(in_turn))[:most]
