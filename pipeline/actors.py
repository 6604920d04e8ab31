"""Composition root: ``dramatiq pipeline.actors`` and ``periodiq pipeline.actors`` import every phase and sweep."""

from __future__ import annotations

import importlib
import os

from actors.website.workflow import model_analysis, prompt_forming, website_analysis
from pipeline.flow import schedule
from pipeline.flow.install import broker as _broker

broker = _broker()

# Read here and not through the settings, which need servers: importing must work without any.
for _module in filter(None, (part.strip() for part in os.environ.get("PIPELINE_WORKFLOWS", "").split(","))):
    importlib.import_module(_module)

__all__ = ["broker", "model_analysis", "prompt_forming", "schedule", "website_analysis"]
