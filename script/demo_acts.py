"""The acts of the demo, the four workflows and an audit: how each is begun, and what it shows at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from sqlalchemy import Connection, text

from pipeline import submit_many
from script import demo_audit

SITES, RECORDS = 20, 40
PAPERS = ("RF-1937-0118", "RF-1938-0042")
COINS = ((1909, "S", "cent", "Lincoln", "VDB cent"), (1889, "CC", "dollar", "Morgan", "silver dollar"))
MARKETS = (("heritage", "items-api"), ("bazaar", "listing-page"), ("penny-rate_limit", "items-api"))


@dataclass(frozen=True)
class Act:
    """One workflow: the names of its jobs, how it starts, and the query behind its table.

    ``meanwhile``: what a person does while it runs, in words.
    """

    title: str
    workflows: tuple[str, ...]
    begin: Callable[[Connection, str], None]
    columns: tuple[str, ...]
    query: str
    meanwhile: Callable[[Connection], list[str]] = lambda _: []


def _websites(connection: Connection, sandbox: str) -> None:
    submit_many(connection, "website", [{"url": f"{sandbox}/sites/{n}/"} for n in range(1, SITES + 1)])


def _documents(connection: Connection, sandbox: str) -> None:  # noqa: ARG001  the registry is the sandbox's by default
    submit_many(connection, "document", [{"document_number": number} for number in PAPERS])


def _records(connection: Connection, sandbox: str) -> None:  # noqa: ARG001  so is Wikidata
    from actors.match.entries import add_entries
    from actors.match.projects import create_project, start_match
    from sandbox.wikidata_labelled import labelled

    project = create_project(connection, "people of a catalogue")
    add_entries(connection, project, [{"name": one.name, **one.data} for one in labelled()[:RECORDS]])
    start_match(connection, project)


def _coins(connection: Connection, sandbox: str) -> None:
    for name, adapter in MARKETS:
        connection.execute(
            text("""INSERT INTO sources (name, adapter, base_url, rate_limit_per_minute)
                    VALUES (:name, :adapter, :url, 600)"""),
            {"name": name, "adapter": adapter, "url": f"{sandbox}/market/{name}"},
        )
    for year, mintmark, denomination, series, title in COINS:
        connection.execute(
            text("""INSERT INTO coin_intakes (year, mintmark, denomination, series, title)
                    VALUES (:year, :mintmark, :denomination, :series, :title)"""),
            {"year": year, "mintmark": mintmark, "denomination": denomination, "series": series, "title": title},
        )
    connection.execute(
        text("""INSERT INTO scrape_jobs (intake_id, source_id)
                               SELECT i.id, s.id FROM coin_intakes i, sources s WHERE s.enabled""")
    )


ACTS = (
    Act(
        "website: website-analysis → prompt-forming → model-analysis",
        ("website",),
        _websites,
        ("site", "cut off", "lang", "title", "what the model says"),
        """SELECT regexp_replace(j.body->>'url', '^.*//[^/]*/', ''),
               (SELECT count(*) FROM pipeline.attempts a WHERE a.job_id = j.id AND a.outcome = 'crashed'),
               w.page->>'language', w.page->>'title', coalesce(w.answer->>'summary', j.error_message)
           FROM pipeline.jobs j LEFT JOIN website_analyses w ON w.job_id = j.id
           WHERE j.workflow = 'website' ORDER BY j.body->>'url' LIMIT 6""",
    ),
    Act(
        "document: registre-extraction → ocr",
        ("document",),
        _documents,
        ("document", "status", "pages", "read as"),
        """SELECT document_number, status, pages, coalesce(boosted_text, ocr_error, error_message)
           FROM extraction_queue ORDER BY document_number""",
    ),
    Act(
        "match: entity-match",
        ("match", "match-finish"),
        _records,
        ("decision", "records", "for example"),
        """SELECT decision, count(*), min(e.name) FROM tasks t JOIN dataset_entries e ON e.id = t.dataset_entry_id
           GROUP BY decision ORDER BY 2 DESC""",
    ),
    Act(
        "scrape: price-collection, then a valuation an intake",
        ("scrape", "valuation"),
        _coins,
        ("coin", "low", "mid", "high", "confidence", "prices"),
        """SELECT i.year || '-' || i.mintmark || ' ' || i.series, to_char(low_cents / 100.0, 'FM999990.00'),
               to_char(mid_cents / 100.0, 'FM999990.00'), to_char(high_cents / 100.0, 'FM999990.00'),
               round(confidence::numeric, 2), points_by_type
           FROM coin_intakes i LEFT JOIN valuations v ON v.intake_id = i.id ORDER BY i.year""",
    ),
    Act(
        "site-audit: crawl (async) → look (children) → approve (event) → publish; digest (schedule)",
        ("site-audit", "page-visit", "audit-digest"),
        demo_audit.begin,
        ("audit of", "cut off", "children", "approved by", "result"),
        """SELECT regexp_replace(j.body->>'url', '^.*//[^/]*/', ''),
               (SELECT count(*) FROM pipeline.attempts a WHERE a.job_id = j.id AND a.outcome = 'crashed'),
               j.result->'look'->>'total', j.result->>'approve', j.result->>'publish'
           FROM pipeline.jobs j WHERE j.workflow = 'site-audit' ORDER BY 1""",
        demo_audit.meanwhile,
    ),
)


def results(connection: Connection, act: Act, width: int) -> Table:
    """The act's table, each cell one line."""
    table = Table(title=act.title, title_justify="left")
    for name in act.columns[:-1]:
        table.add_column(name, no_wrap=True, max_width=22)
    table.add_column(act.columns[-1], no_wrap=True, max_width=max(width - 62, 20))
    for row in connection.execute(text(act.query)):
        table.add_row(*(_cell(value) for value in row))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{n} {name}" for name, n in sorted(value.items()))
    return "" if value is None else " ".join(str(value).split())[:200]
