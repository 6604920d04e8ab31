"""Website analysis: the phases in their order, each with its pool and its patience."""

from __future__ import annotations

from actors.website.model_analysis import model_analysis as run_model
from actors.website.prompt_forming import prompt_forming as form
from actors.website.store import stored_analysis
from actors.website.website_analysis import website_analysis as analyse_website
from pipeline.flow.inspect import OUTPUTS
from pipeline.flow.workflow import Workflow
from pipeline.rules.backoff import Backoff

website = Workflow("website")
OUTPUTS["website"] = stored_analysis

website_analysis = website.phase("website-analysis", pool=10, time_limit=120.0, backoff=Backoff((5.0, 30.0, 120.0)))(
    analyse_website
)
prompt_forming = website.phase("prompt-forming", pool=10, time_limit=60.0)(form)
# One model for all: when it says Retry-After, every worker waits.
model_analysis = website.phase(
    "model-analysis", pool=10, time_limit=240.0, backoff=Backoff((10.0, 60.0, 300.0)), shared_limit=True
)(run_model)
