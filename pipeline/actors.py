"""Composition root: ``dramatiq pipeline.actors`` and ``periodiq pipeline.actors`` import every phase and sweep."""

from __future__ import annotations

import importlib
import os
import sys

from actors.document.workflow import ocr, registre_extraction
from actors.match.workflow import entity_match, fan_out, project_completion
from actors.scrape.workflow import price_collection, valuation
from actors.website.workflow import model_analysis, prompt_forming, website_analysis
from pipeline.flow import schedule
from pipeline.flow.install import broker as _broker
from pipeline.rules.errors import BadInput

broker = _broker()

# As dramatiq and periodiq do for themselves: a workflow may lie in the folder in which the command is run.
if os.getcwd() not in sys.path:  # noqa: PTH109  sys.path holds strings
    sys.path.insert(0, os.getcwd())  # noqa: PTH109

# Read here and not through the settings, which need servers: importing must work without any.
for _module in filter(None, (part.strip() for part in os.environ.get("PIPELINE_WORKFLOWS", "").split(","))):
    try:
        importlib.import_module(_module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{_module}.".startswith(f"{error.name}."):
            raise
        raise BadInput(
            f"PIPELINE_WORKFLOWS names {_module}, and there is no such module here: "
            "run this in the folder of its file, or set PYTHONPATH to it"
        ) from None

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
