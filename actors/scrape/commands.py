"""Commands about the marketplaces that are scraped: list, unread prices, currency, pause, resume."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pipeline.cli import console, transaction

Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Which = Annotated[str, typer.Argument(help="The source's id or name.")]
sources = typer.Typer(help="Marketplaces that are scraped: list, unread prices, currency, pause, resume.")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.add_typer(sources, name="sources")


@sources.callback(invoke_without_command=True)
def plain(context: typer.Context) -> None:
    """Without a command: list."""
    if context.invoked_subcommand is None:
        list_all()


@sources.command("list")
def list_all(as_json: Json = False) -> None:
    """All sources: breaker, failures, pauses, how many jobs wait, and how many prices were not read."""
    from actors.scrape import sources as scraped
    from pipeline import engine

    with engine().connect() as connection:
        rows = scraped.list_sources(connection)
    if as_json:
        print(json.dumps(rows, default=str))
        return
    table = Table("source", "state", "until", "streak", "per minute", "waiting", "unread", "last success", "last error")
    for row in rows:
        table.add_row(*_cells(row))
    console().print(table)


@sources.command("unread")
def unread(
    which: Which,
    reason: Annotated[str | None, typer.Option(help="Only those with this reason.")] = None,
    most: Annotated[int, typer.Option("--limit", min=1, max=500, help="How many of them, latest first.")] = 50,
    as_json: Json = False,
) -> None:
    """Prices of a source that could not be read for certain, each with its reason."""
    from actors.scrape import sources as scraped
    from pipeline import engine

    with engine().connect() as connection:
        reasons, prices = scraped.unread_prices(connection, which, reason, most)
        own = scraped.find_source(connection, which)["currency"]
    if as_json:
        print(json.dumps({"reasons": reasons, "prices": prices}, default=str))
        return
    print(", ".join(f"{count} {why}" for why, count in reasons.items()) or "every price of it was read")
    if "unknown currency" in reasons and own is None:
        print(f"If all prices there are of one currency, say so: pipeline sources currency {which} USD")
    table = Table("price", "reason", "detail", "title", "url", "last seen")
    for row in prices:
        texts = (escape(row[name][:120]) for name in ("price_text", "reason", "detail", "title", "url"))
        table.add_row(*texts, f"{row['last_seen_at']:%F %T}")
    console().print(table)


@sources.command("pause")
def pause(
    which: Which,
    minutes: Annotated[float | None, typer.Option(help="How long; without it, until it is resumed.")] = None,
) -> None:
    """Hold a source's jobs: they wait at no cost."""
    from actors.scrape import sources as scraped

    with transaction() as connection:
        found = scraped.pause_source(connection, which, None if minutes is None else minutes * 60)
    print(f"paused {found['name']}" + (f" for {minutes:g} min" if minutes is not None else " until it is resumed"))


@sources.command("currency")
def currency(which: Which, code: Annotated[str, typer.Argument(help="A code of ISO 4217, such as USD.")]) -> None:
    """Say what a bare number and a sign of several currencies mean at a source, from the next answer on."""
    from actors.scrape import sources as scraped

    with transaction() as connection:
        found = scraped.set_currency(connection, which, code)
    print(f"{found['name']}: what names no currency of its own is {found['currency']}")


@sources.command("resume")
def resume(which: Which) -> None:
    """End a source's pause, also the breaker's; its jobs go out at its rate."""
    from actors.scrape import sources as scraped

    with transaction() as connection:
        found = scraped.resume_source(connection, which)
    print(f"resumed {found['name']}: {found['waiting']} jobs go out at {found['rate_limit_per_minute']:g} a minute")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    until, success = row["paused_until"], row["last_success_at"]
    return (
        row["name"],
        row["state"] if row["state"] != "paused" else f"paused ({row['pause_reason']})",
        "" if until is None or row["state"] == "closed" else f"{until:%F %T}",
        str(row["failure_streak"]),
        f"{row['rate_limit_per_minute']:g}",
        str(row["waiting"]),
        str(row["unread"]),
        "" if success is None else f"{success:%F %T}",
        (row["last_error"] or "")[:80],
    )
