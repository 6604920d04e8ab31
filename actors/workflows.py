"""The four workflows that ship with the engine, and what they plug into it."""

from __future__ import annotations

from pathlib import Path

from actors.document.workflow import ocr, registre_extraction
from actors.match.workflow import entity_match, fan_out, project_completion
from actors.scrape.workflow import price_collection, valuation
from actors.website.workflow import model_analysis, prompt_forming, website_analysis
from pipeline import View, extend

HERE = Path(__file__).parent

extend("database", migrate="db.migrate:migrate")
extend("sandbox", commands=["sandbox.commands:add_to"])
extend("website", outputs={"website": "actors.website.store:stored_analysis"})
extend("document", outputs={"document": "actors.document.store:stored_document"})
extend(
    "match",
    routes=["actors.match.routes:router"],
    views=[
        View("/projects", HERE / "match/dashboard/projects.js", title="Projects"),
        View("/projects/{id}", HERE / "match/dashboard/project.js"),
    ],
    outputs={"match": "actors.match.store:stored_match"},
)
extend(
    "scrape",
    routes=["actors.scrape.routes:router"],
    commands=["actors.scrape.commands:add_to"],
    views=[
        View("/sources", HERE / "scrape/dashboard/sources.js", title="Sources"),
        View("/sources/{id}", HERE / "scrape/dashboard/unread.js"),
    ],
    metrics=["actors.scrape.metrics:breakers", "actors.scrape.metrics:unread"],
    outputs={
        "scrape": "actors.scrape.store:stored_points",
        "valuation": "actors.scrape.store:stored_value",
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
