"""Composition root: ``dramatiq pipeline.actors`` and ``periodiq pipeline.actors`` import every phase and sweep."""

from __future__ import annotations

import importlib
import os

from actors.document.workflow import ocr, registre_extraction
from actors.match.workflow import entity_match, fan_out, project_completion
from actors.scrape.workflow import price_collection, valuation
from actors.website.workflow import model_analysis, prompt_forming, website_analysis
from pipeline.flow import schedule
from pipeline.flow.install import broker as _broker

broker = _broker()

# Read here and not through the settings, which need servers: importing must work without any.
for _module in filter(None, (part.strip() for part in os.environ.get("PIPELINE_WORKFLOWS", "").split(","))):
    importlib.import_module(_module)

__all__ = [
    "broker",
    "entity_match",
    "fan_out",
    "model_analysis",
    "ocr",
    "price_collection",
    "project_completion",
    "prompt_forming",
    "registre_extraction",
    "schedule",
    "valuation",
    "website_analysis",
]
