"""Phase 3: run the model and keep its structured analysis."""

from __future__ import annotations

from typing import Any

from actors.website import store
from actors.website.chat import ModelEndpoint
from actors.website.config import worker_settings
from actors.website.model import Analysed, analyse
from pipeline import Done, Job


async def model_analysis(job: Job) -> Done:
    """Keep the analysis, its tokens and its cost."""
    settings = worker_settings()
    endpoint = settings.model
    headers = {"Idempotency-Key": job.idempotency_key, "traceparent": job.traceparent}
    prompts = await store.load_prompts(job)
    analysed = await analyse(endpoint, prompts.messages, headers, settings.prompts_folder)
    return Done(result=outcome(analysed, endpoint), write=store.save_answer(job.id, analysed, endpoint))


def outcome(analysed: Analysed, endpoint: ModelEndpoint) -> dict[str, Any]:
    """What the job's results show of the analysis."""
    cost = analysed.usage.cost(endpoint)
    return {
        "model": analysed.model,
        "site_type": analysed.analysis.site_type,
        "summary": analysed.analysis.summary[:500],
        "tokens_in": analysed.usage.tokens_in,
        "tokens_out": analysed.usage.tokens_out,
        "usage_estimated": analysed.usage.estimated,
        "cost_usd": None if cost is None else str(cost),
        "repaired": analysed.repaired,
    }
