"""The four workflows that ship with the engine, and what they plug into it."""

from __future__ import annotations

from actors.document.workflow import ocr, registre_extraction
from actors.match.workflow import entity_match, fan_out, project_completion
from actors.scrape.workflow import price_collection, valuation
from actors.website.workflow import model_analysis, prompt_forming, website_analysis
from pipeline import extend

extend(
    "workflows",
    migrate="db.migrate:migrate",
    routes=["actors.match.routes:router", "actors.scrape.routes:router"],
    commands=["actors.scrape.commands:add_to", "sandbox.commands:add_to"],
    metrics=["actors.scrape.metrics:breakers"],
    outputs={
        "document": "actors.document.store:stored_document",
        "match": "actors.match.store:stored_match",
        "scrape": "actors.scrape.store:stored_points",
        "valuation": "actors.scrape.store:stored_value",
        "website": "actors.website.store:stored_analysis",
    },
)

__all__ = [
    "entity_match",
    "fan_out",
    "model_analysis",
    "ocr",
    "price_collection",
    "project_completion",
    "prompt_forming",
    "registre_extraction",
    "valuation",
    "website_analysis",
]
