"""Phase 2: form the prompts from the page and the templates."""

from __future__ import annotations

from actors.website import store
from actors.website.config import worker_settings
from actors.website.messages import form_prompts
from pipeline import Done, Job


def prompt_forming(job: Job) -> Done:
    """Keep the messages for the model; the same page and templates always give the same messages."""
    settings = worker_settings()
    prompts = form_prompts(store.load_page(job), settings.token_budget, settings.prompts_folder)
    result = {"estimated_tokens": prompts.estimated_tokens, "text_was_cut": prompts.text_was_cut}
    return Done(result=result, write=store.save_prompts(job.id, prompts))
