"""Website analysis: the phases in their order, each with its pool and its patience."""

from __future__ import annotations

from actors.website.config import WebsiteSettings
from actors.website.model_analysis import model_analysis as run_model
from actors.website.prompt_forming import prompt_forming as form
from actors.website.website_analysis import website_analysis as analyse_website
from pipeline import Backoff, Workflow
from pipeline.settings import read

website = Workflow("website", order="start-first")
_settings = read(WebsiteSettings)

website_analysis = website.phase(
    "website-analysis",
    pool=_settings.pool,
    time_limit=120.0,
    backoff=Backoff((5.0, 30.0, 120.0)),
    throttle=_settings.scan,
)(analyse_website)
prompt_forming = website.phase("prompt-forming", pool=_settings.pool, time_limit=60.0, throttle=_settings.cycle)(form)
# One model for all: when it says Retry-After, every worker waits.
model_analysis = website.phase(
    "model-analysis",
    pool=_settings.pool,
    time_limit=240.0,
    backoff=Backoff((10.0, 60.0, 300.0)),
    throttle=_settings.cycle,
    shared_limit=True,
)(run_model)
